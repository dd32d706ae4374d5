"""`ovirt-placement status`: what is known of each cluster, how fresh it is, and whether its rules hold."""

from __future__ import annotations

import argparse

from ovirt_placement import config
from ovirt_placement.answers import status
from ovirt_placement.answers.status import Keys, Known, Source, Summary
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import (
    add_cluster,
    add_question,
    clusters_of,
    show,
    show_json,
)
from ovirt_placement.inventory.expected.traces import Outcomes

DESCRIPTION = """\
Show each cluster with its hosts, VMs and affinity groups, how many of its rules are broken, and where all
this is known from.
"""

_HEADERS = ("cluster", "hosts up", "VMs running", "on their way", "HA VMs", "groups", "broken rules")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "status", "what is known of each cluster, and how fresh it is", DESCRIPTION, run
    )
    add_cluster(parser)
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    known = _read(args)
    snapshot, source = known.snapshot, known.source
    summaries = [status.summary(snapshot, cluster) for cluster in clusters_of(args, snapshot)]
    keys = status.keys_of(snapshot)
    if args.json:
        show_json({"source": source, "placement_keys": keys, "clusters": summaries})
        return 0
    print(f"{_told(source)}\n{_told_of_keys(keys, source)}")
    if source.expected_hosts is not None and any(source.expected_hosts):
        print(_told_of_expected(source.expected_hosts))
    if status.details_are_lacking(known):
        print("Disks, network interfaces or owners are being read: until then, keys on them have no effect.")
    print()
    show([_row(summary) for summary in summaries], _HEADERS)
    return 0


def _read(args: argparse.Namespace) -> Known:
    if args.state is not None:
        return status.of_file(args.state)
    return status.of_engine(config.load(args.config))


def _told(source: Source) -> str:
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


def _told_of_keys(keys: Keys, source: Source) -> str:
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


def _row(summary: Summary) -> tuple[str, ...]:
    return (
        summary.cluster,
        f"{summary.hosts_up} of {summary.hosts}",
        f"{summary.vms_running} of {summary.vms}",
        str(summary.vms_on_their_way),
        str(summary.vms_highly_available),
        str(summary.groups),
        f"{summary.hard_violations} hard, {summary.soft_violations} soft",
    )
