"""Whether highly available VMs would be started again if hosts failed, in words."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.answers.names import host_name, vm_name
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.check import HaCheck
from ovirt_placement.rules.failover.outcomes import Proven
from ovirt_placement.rules.failover.protection import Outside

#: The verdict on a cluster.
WORDS = {True: "safe", False: "unsafe", None: "unknown"}


def rows(found: HaCheck, snapshot: Snapshot) -> list[tuple[str, ...]]:
    """In words: cluster, failures, both verdicts, hosts that must not fail together, VMs without a home then.

    Below stand sets that only the engine's own check finds unsafe, what was not judged, and VMs that the
    check is not about.
    """
    head = (
        snapshot.cluster_by_id[found.cluster].name,
        str(found.failures),
        WORDS[found.safe],
        WORDS[found.by_engine.safe],
    )
    told = [
        *_losses(found, snapshot),
        *_losses_by_engine(found, snapshot),
        *_open(found, ""),
        *_open(found.by_engine, " by the engine's own check"),
        *(("not counted", _standing(one, snapshot)) for one in found.outside),
    ]
    return [(*head, *one) for one in told] or [(*head, "", "")]


def _losses(found: Proven, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for loss in found.losses:
        yield (
            "\n".join(host_name(host, snapshot) for host in loss.hosts),
            "\n".join(vm_name(vm, snapshot) for vm in loss.homeless),
        )


def _losses_by_engine(found: HaCheck, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What is lost by the engine's own check alone: there, idle CPU counts."""
    lost = {loss.hosts for loss in found.losses}
    alone = [loss for loss in found.by_engine.losses if loss.hosts not in lost]
    for loss in alone:
        yield (
            "\n".join(host_name(host, snapshot) for host in loss.hosts),
            "\n".join(f"{vm_name(vm, snapshot)} (by the engine's own check)" for vm in loss.homeless),
        )


def _open(found: Proven, by: str) -> Iterator[tuple[str, str]]:
    sets = len(found.unknown) + found.unjudged
    if sets:
        proven = f"{found.survived} sets of hosts are proven to be survived"
        yield f"{sets} sets are not judged{by}", proven


def _standing(one: Outside, snapshot: Snapshot) -> str:
    name = vm_name(one.vm, snapshot)
    if one.host is None:
        return f"{name} is {one.status}"
    return f"{name} is {one.status} on {host_name(one.host, snapshot)}, which is {one.host_status}"
