"""What the hosts that the engine offers show about VMs that it has just decided about.

The engine's own filter for VM affinity has judged by where these VMs really are. So an expected placement
that does not fit the hosts offered is refuted, and corrected where one place is left.
"""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.membership import groups_of, members
from ovirt_placement.rules.locations import destinations
from ovirt_placement.rules.verdict import Request

_ENGINES_FILTER = "VmAffinityGroups"


def refuted(snapshot: Snapshot, request: Request) -> dict[str, str | None]:
    """Unconfirmed peers that cannot be where the snapshot expects them, and where one is, if that is known.

    Only hard groups of the VM itself count, and only where the engine's own filter is in the policy.
    """
    (vm, *_) = request.vms
    if not snapshot.unconfirmed or not _engine_judges(snapshot, vm):
        return {}
    offered = frozenset(request.candidate_hosts)
    found: dict[str, str | None] = {
        peer: None
        for peer in _peers(snapshot, vm, positive=False)
        if peer in snapshot.unconfirmed and not offered.isdisjoint(destinations(snapshot, peer))
    }
    return {**found, **_elsewhere(snapshot, vm, offered)}


def judged_by_engine(snapshot: Snapshot, request: Request) -> frozenset[str]:
    """The other VMs of the hard groups of a VM, if the engine's own filter has judged by where they are."""
    (vm, *_) = request.vms
    if not _engine_judges(snapshot, vm):
        return frozenset()
    return frozenset((*_peers(snapshot, vm, positive=True), *_peers(snapshot, vm, positive=False)))


def _engine_judges(snapshot: Snapshot, vm: str) -> bool:
    """Whether the engine's own filter is known to be in the policy of a VM's cluster."""
    known = snapshot.vm_by_id.get(vm)
    policy = None if known is None else snapshot.cluster_by_id[known.cluster].scheduling_policy
    return policy is not None and _ENGINES_FILTER in policy.engine_filters


def _elsewhere(snapshot: Snapshot, vm: str, offered: frozenset[str]) -> dict[str, str | None]:
    """Unconfirmed peers to run with that are not where they are expected.

    The engine offers hosts of such peers alone; more hosts than there are peers show that none is anywhere.
    """
    places = {peer: destinations(snapshot, peer) for peer in _peers(snapshot, vm, positive=True)}
    unconfirmed = {peer: hosts for peer, hosts in places.items() if peer in snapshot.unconfirmed}
    if len(offered) > len(places):
        return dict.fromkeys(unconfirmed)
    if any(not offered.isdisjoint(hosts) for peer, hosts in places.items() if peer not in unconfirmed):
        return {}
    place = next(iter(offered)) if len(offered) == len(places) == 1 else None
    return {peer: place for peer, hosts in unconfirmed.items() if offered.isdisjoint(hosts)}


def _peers(snapshot: Snapshot, vm: str, *, positive: bool) -> Iterator[str]:
    for group in groups_of(snapshot).get(vm, ()):
        if group.vms_rule.hard and group.vms_rule.positive is positive:
            yield from (peer for peer in members(snapshot)[group.id] if peer != vm)
