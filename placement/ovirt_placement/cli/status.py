"""`ovirt-placement status`: what is known of each cluster, how fresh it is, and whether its rules hold."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ovirt_placement import config, inventory
from ovirt_placement.answers import sections, status
from ovirt_placement.answers.documents.status import StatusDocument
from ovirt_placement.answers.status import ClusterStatus, Keys, Known, StateSource
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import (
    add_cluster,
    add_question,
    clusters_of,
    last_known,
    show,
    show_answer,
)
from ovirt_placement.inventory.expected.traces import Outcomes

DESCRIPTION = """\
Show each cluster with its hosts, VMs and affinity groups, how many of its rules are broken, and where all
this is known from. When the engine is away, what was known last, with its age; the exit status is 1 then,
and where a section of the configuration is wrong.
"""

EXAMPLES = """\
  ovirt-placement status
  ovirt-placement status --json --timeout 5      # for a monitor
"""

_HEADERS = ("cluster", "hosts up", "VMs running", "on their way", "HA VMs", "groups", "broken rules")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "status", "what is known of each cluster, and how fresh it is", DESCRIPTION, run, EXAMPLES
    )
    add_cluster(parser)
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    known = _read(args)
    wrong = () if args.state is not None else tuple(sections.complaints(config.load(args.config)))
    snapshot, source = known.snapshot, known.source
    summaries = [status.summary(snapshot, cluster) for cluster in clusters_of(args, snapshot)]
    keys = status.keys_of(snapshot)
    if args.json:
        show_answer(
            args,
            StatusDocument(source=source, placement_keys=keys, clusters=tuple(summaries), mistakes=wrong),
        )
    else:
        _tell(known, keys, summaries)
        for mistake in wrong:
            print(f"\nA command will not start: {mistake}")
    return int(source.error is not None or bool(wrong))


def _tell(known: Known, keys: Keys, summaries: Sequence[ClusterStatus]) -> None:
    source = known.source
    if source.error is not None:
        print(f"{source.error[:1].upper()}{source.error[1:]}.")
    if source.kind == "nothing":
        print("Nothing is known of it here.")
        return
    print(f"{_told(source)}\n{_told_of_keys(keys, source)}")
    if source.expected_hosts is not None and any(source.expected_hosts):
        print(_told_of_expected(source.expected_hosts))
    if status.details_are_lacking(known):
        print("Disks, network interfaces or owners are being read: until then, keys on them have no effect.")
    print()
    if summaries:
        show([_row(summary) for summary in summaries], _HEADERS)
    else:
        print("There is no cluster.")


def _read(args: argparse.Namespace) -> Known:
    if args.state is not None:
        return status.of_file(args.state)
    configuration = config.load(args.config)
    try:
        known = inventory.known(
            config=configuration, deadline=args.timeout, measured=inventory.Measured.NOTHING
        )
    except inventory.NoSnapshot as error:
        try:
            known = last_known(configuration, error)
        except inventory.NoSnapshot:
            return status.of_nothing(configuration, str(error))
        if known.publication is not None:
            args.known_age_seconds = known.publication.age_seconds
        return status.of_engine(known, configuration, str(error))
    return status.of_engine(known, configuration)


def _told(source: StateSource) -> str:
    text = f"Known from the {source.kind} {source.where}"
    if source.age_seconds is None:
        return f"{text}."
    ages = [f"asked what changed {source.age_seconds:.1f} s ago"]
    if source.whole_age_seconds is not None:
        ages.append(f"read whole {source.whole_age_seconds:.0f} s ago")
    if source.statistics_age_seconds is not None:
        ages.append(f"statistics {source.statistics_age_seconds:.0f} s ago")
    if source.details_age_seconds is not None:
        ages.append(f"what keys refer to {source.details_age_seconds:.0f} s ago")
    return f"{text}: {', '.join(ages)}."


def _told_of_keys(keys: Keys, source: StateSource) -> str:
    text = (
        f"Placement keys: {keys.keys}, frozen sets: {keys.frozen_sets}, sticky copies: {keys.sticky_copies}"
    )
    if source.keys_age_seconds is None:
        return f"{text}{'' if source.store_answers is None else ': the store could not be read yet'}."
    if not source.store_answers:
        return f"{text}: the store cannot be read, these are {source.keys_age_seconds:.0f} s old."
    return f"{text}: read from the store {source.keys_age_seconds:.1f} s ago."


def _told_of_expected(outcomes: Outcomes) -> str:
    return (
        f"VMs on their way: of the latest {sum(outcomes)} expected hosts,"
        f" {outcomes.right} were those that the engine chose."
    )


def _row(summary: ClusterStatus) -> tuple[str, ...]:
    return (
        summary.cluster.name,
        f"{summary.hosts_up} of {summary.hosts}",
        f"{summary.vms_running} of {summary.vms}",
        str(summary.vms_on_their_way),
        str(summary.vms_highly_available),
        str(summary.groups),
        f"{summary.hard_violations} hard, {summary.soft_violations} soft",
    )
