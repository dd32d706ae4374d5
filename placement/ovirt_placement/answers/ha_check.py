"""Whether highly available VMs would be started again if hosts failed, in words."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.rules.failover.check import HaCheck
from ovirt_placement.rules.failover.outcomes import Loss, Proven, Size, Tight
from ovirt_placement.rules.failover.protection import Outside

#: The verdict on a cluster.
WORDS = {True: "safe", False: "unsafe", None: "unknown"}
#: How many of the worst sets are reported where not all could be judged; JSON has them all.
_TIGHTEST = 3


def rows(found: HaCheck, snapshot: Snapshot) -> list[tuple[str, ...]]:
    """In words: cluster, failures, both verdicts, hosts that must not fail together, VMs without a home then.

    Below stand sets that only the engine's own check finds unsafe, what was not judged with the tightest
    sets that were looked for, and VMs that the check is not about.
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
        *_open(found, _what_fails(found), ""),
        *_tightest(found, snapshot),
        *_open(found.by_engine, _what_fails(found), " by the engine's own check"),
    ]
    if found.outside:
        told.append(("not counted", "\n".join(placement(one, snapshot) for one in found.outside)))
    return [(*head, *one) for one in told] or [(*head, "", "")]


def _what_fails(found: HaCheck) -> str:
    return "domains" if any(unit.domain is not None for unit in found.units) else "hosts"


def _losses(found: Proven, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for loss in found.losses:
        yield _failing(loss, snapshot), "\n".join(vm_name(vm, snapshot) for vm in loss.homeless)


def _losses_by_engine(found: HaCheck, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What is lost by the engine's own check alone: there, idle CPU counts."""
    lost = {loss.hosts for loss in found.losses}
    for loss in found.by_engine.losses:
        if loss.hosts not in lost:
            homeless = (f"{vm_name(vm, snapshot)} (by the engine's own check)" for vm in loss.homeless)
            yield _failing(loss, snapshot), "\n".join(homeless)


def _failing(loss: Loss | Tight, snapshot: Snapshot) -> str:
    """The domains that fail, or the hosts."""
    if loss.domains:
        return "\n".join(f"domain {name}" for name in loss.domains)
    return "\n".join(host_name(host, snapshot) for host in loss.hosts)


def _open(found: Proven, what: str, by: str) -> Iterator[tuple[str, str]]:
    """What is not known, and what is proven nevertheless, for each size of sets."""
    sizes = found.sizes or (Size(1, found.survived, found.unjudged),)
    for size in sizes:
        unknown = sum(_members(one.hosts, one.domains) == size.size for one in found.unknown)
        if size.unjudged + unknown:
            one = f"sets of {size.size} {what}" if len(sizes) > 1 else "sets"
            proven = f"{size.survived} sets of {what} are proven to be survived"
            yield f"{size.unjudged + unknown} {one} are not judged{by}", proven


def _members(hosts: tuple[str, ...], domains: tuple[str, ...]) -> int:
    return len(domains or hosts)


def _tightest(found: HaCheck, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The worst sets that were looked for, but those that are lost and told of already."""
    left = [one for one in found.tightest if one.survived is not False]
    for one in left[:_TIGHTEST]:
        outcome = "survived" if one.survived else "not judged"
        room = f"room for {max(0, one.room_for)} more VMs of {one.memory_mb} MiB at most"
        yield _failing(one, snapshot), f"{outcome}, among the tightest: {room}"


def placement(one: Outside, snapshot: Snapshot) -> str:
    name = vm_name(one.vm, snapshot)
    if one.host is None:
        return f"{name} is {one.status}"
    return f"{name} is {one.status} on {host_name(one.host, snapshot)}, which is {one.host_status}"
