"""The balance of HA reservation: one highly available VM away from a host that holds too many."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.ha.vms import ha_vms_of
from ovirt_placement.rules.load.moves import admitted, kept_free, may_move
from ovirt_placement.rules.verdict import BalanceMove

#: Percent of the even share from which on a host holds too many; the engine's default.
OVER_UTILIZATION = 200


class Spread(Record, frozen=True):
    """How the highly available VMs of a cluster are spread over some of its hosts."""

    #: VMs by host.
    counts: dict[str, int]
    #: VMs that each host would have if all had the same, rounded up.
    share: int
    #: VMs from which on a host holds too many.
    threshold: int


def spread(
    snapshot: Snapshot, cluster_id: str, hosts: tuple[str, ...], over_utilization: int = OVER_UTILIZATION
) -> Spread:
    """Count over these hosts alone, so that sources and shares speak of the same ones (HA7)."""
    counts = {host: len(ha_vms_of(snapshot).get((cluster_id, host), ())) for host in hosts}
    share = ceil(sum(counts.values()) / max(1, len(hosts)))
    return Spread(counts, share, ceil(share * over_utilization / 100))


def balance(
    snapshot: Snapshot,
    cluster_id: str,
    candidate_hosts: tuple[str, ...],
    over_utilization: int = OVER_UTILIZATION,
) -> BalanceMove | None:
    """Choose a highly available VM to move; None if the load is even.

    A host is overloaded from `over_utilization` percent of the even share on. The VM goes to hosts
    below the share, and only if it leaves its host fuller than it makes the other (HA3, HA6); the
    fullest host that has a movable VM comes first (HA5, HA8).
    """
    if not snapshot.cluster_by_id[cluster_id].ha_reservation or len(candidate_hosts) < 2:
        return None
    now = spread(snapshot, cluster_id, candidate_hosts, over_utilization)
    for source in sorted(candidate_hosts, key=lambda host: (-now.counts[host], host)):
        if now.counts[source] and now.counts[source] >= now.threshold:
            targets = _targets(snapshot, now, source)
            for vm in _movable(snapshot, cluster_id, source):
                if hosts := admitted(snapshot, vm, targets):
                    return BalanceMove(vm.id, hosts)
    return None


def _targets(snapshot: Snapshot, now: Spread, source: str) -> tuple[str, ...]:
    """Hosts below the share that stay below the source, the emptiest first; never a failover host."""
    fits = (
        host
        for host, count in now.counts.items()
        if count < now.share and count + 1 < now.counts[source] and not kept_free(snapshot, host)
    )
    return tuple(sorted(fits, key=lambda host: (now.counts[host], host)))


def _movable(snapshot: Snapshot, cluster_id: str, source: str) -> Iterator[Vm]:
    """The source's highly available VMs that may be migrated now, by id."""
    for vm_id in sorted(ha_vms_of(snapshot).get((cluster_id, source), ())):
        vm = snapshot.vm_by_id[vm_id]
        if vm.host == source and may_move(snapshot, vm):
            yield vm
