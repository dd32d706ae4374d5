"""`ovirt-placement status`: what is known of each cluster, how fresh it is, and whether its rules hold."""

from __future__ import annotations

import argparse

from ovirt_placement import config, inventory
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import add_cluster, add_question, clusters_of, show, show_json
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.model import Cluster, Snapshot, Struct, state_file
from ovirt_placement.rules.violations import find_violations

DESCRIPTION = """\
Show each cluster with its hosts, VMs and affinity groups, how many of its rules are broken, and where all
this is known from.
"""

_HEADERS = ("cluster", "hosts up", "VMs running", "on their way", "HA VMs", "groups", "broken rules")


class Source(Struct, frozen=True):
    """Where a state comes from; ages in seconds."""

    kind: str
    where: str
    version: int | None = None
    age_seconds: float | None = None
    #: Since all was last read, whatever had changed.
    whole_age_seconds: float | None = None
    statistics_age_seconds: float | None = None
    #: Since the placement keys were those of the store.
    keys_age_seconds: float | None = None
    #: Whether it could be read when it was last asked.
    store_answers: bool | None = None
    #: Since the disks, network interfaces and owners that keys refer to were last read of all VMs.
    details_age_seconds: float | None = None


class Keys(Struct, frozen=True):
    """Placement keys in numbers."""

    #: Those that people set.
    keys: int
    #: VMs with a set of keys that they started with.
    frozen_sets: int
    sticky_copies: int


class Summary(Struct, frozen=True):
    """A cluster in numbers."""

    cluster: str
    hosts: int
    hosts_up: int
    vms: int
    vms_running: int
    vms_on_their_way: int
    vms_highly_available: int
    groups: int
    hard_violations: int
    soft_violations: int


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "status", "what is known of each cluster, and how fresh it is", DESCRIPTION, run
    )
    add_cluster(parser)
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    snapshot, source = _read(args)
    summaries = [_summary(snapshot, cluster) for cluster in clusters_of(args, snapshot)]
    keys = Keys(
        keys=len(snapshot.placement_keys),
        frozen_sets=len(snapshot.frozen_keys),
        sticky_copies=len(snapshot.sticky_copies),
    )
    if args.json:
        show_json({"source": source, "placement_keys": keys, "clusters": summaries})
        return 0
    print(f"{_told(source)}\n{_told_of_keys(keys, source)}")
    if source.kind == "inventory" and source.details_age_seconds is None and _refer_to_details(snapshot):
        print("Disks, network interfaces or owners are being read: until then, keys on them have no effect.")
    print()
    show([_row(summary) for summary in summaries], _HEADERS)
    return 0


def _read(args: argparse.Namespace) -> tuple[Snapshot, Source]:
    if args.state is not None:
        return state_file.load(args.state), Source(kind="state file", where=str(args.state))
    settings = config.load(args.config)
    snapshot, published = inventory.known(config=settings)
    if published is None:
        return snapshot, Source(kind="engine", where=settings.engine.url or "")
    return snapshot, Source(
        kind="inventory",
        where=str(settings.inventory.directory),
        version=published.version,
        age_seconds=published.engine_age_seconds,
        whole_age_seconds=published.whole_age_seconds,
        statistics_age_seconds=published.statistics_age_seconds,
        keys_age_seconds=published.keys_age_seconds,
        store_answers=published.store_answers,
        details_age_seconds=published.details_age_seconds,
    )


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


def _refer_to_details(snapshot: Snapshot) -> bool:
    return bool(referred(key.level for key in snapshot.placement_keys))


def _summary(snapshot: Snapshot, cluster: Cluster) -> Summary:
    hosts = snapshot.hosts_of_cluster.get(cluster.id, ())
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster.id]
    violations = find_violations(snapshot, cluster.id)
    return Summary(
        cluster=cluster.name,
        hosts=len(hosts),
        hosts_up=sum(host.up for host in hosts),
        vms=len(vms),
        vms_running=sum(vm.host is not None for vm in vms),
        vms_on_their_way=sum(vm.status == "migrating" or vm.id in snapshot.pending_hosts for vm in vms),
        vms_highly_available=sum(vm.ha for vm in vms),
        groups=sum(group.cluster == cluster.id for group in snapshot.affinity_groups),
        hard_violations=sum(violation.hard for violation in violations),
        soft_violations=sum(not violation.hard for violation in violations),
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
