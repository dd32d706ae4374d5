"""The balance of HA reservation: one highly available VM away from a host that holds too many."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.ha.usage import Measure, added, even_share, ha_vms_of, used
from ovirt_placement.rules.load.even_distribution import admitted, choose_move, kept_free, may_move
from ovirt_placement.rules.verdict import BalanceMove

#: Percent of the even share from which on a host holds too many; the engine's default.
OVER_UTILIZATION = 200


class Spread(Record, frozen=True):
    """How the highly available VMs of a cluster are spread over some of its hosts, by one measure."""

    measure: Measure
    #: What they use, by host.
    used: dict[str, Fraction]
    #: What they would use of each host if all had the same; VMs are rounded up.
    share: Fraction
    #: From this use on a host holds too many.
    threshold: Fraction


def spread(
    snapshot: Snapshot,
    cluster_id: str,
    hosts: tuple[str, ...],
    over_utilization: int = OVER_UTILIZATION,
    measure: Measure = Measure.RESOURCES,
) -> Spread:
    """Measure these hosts alone, so that sources and shares speak of the same ones (HA7)."""
    now = {host: used(snapshot, cluster_id, host, measure) for host in hosts}
    if measure is Measure.RESOURCES:
        share = even_share(snapshot, cluster_id, hosts)
        return Spread(measure, now, share, share * over_utilization / 100)
    whole = ceil(sum(now.values()) / max(1, len(hosts)))
    return Spread(measure, now, Fraction(whole), Fraction(ceil(Fraction(whole * over_utilization, 100))))


def balance(
    snapshot: Snapshot,
    cluster_id: str,
    candidate_hosts: tuple[str, ...],
    over_utilization: int = OVER_UTILIZATION,
    measure: Measure = Measure.RESOURCES,
) -> BalanceMove | None:
    """Choose a highly available VM to move; None if the load is even.

    A host is overloaded from `over_utilization` percent of the even share on. The VM goes to hosts
    below the share, and only if it leaves its host fuller than it makes the other (HA3, HA6); the
    fullest host that has a movable VM comes first (HA5, HA8), and the largest of its VMs; but a move that
    breaks no soft group comes before one that does.
    """
    if not snapshot.cluster_by_id[cluster_id].ha_reservation or len(candidate_hosts) < 2:
        return None
    now = spread(snapshot, cluster_id, candidate_hosts, over_utilization, measure)
    return choose_move(snapshot, _moves(snapshot, cluster_id, now))


def _moves(snapshot: Snapshot, cluster_id: str, now: Spread) -> Iterator[BalanceMove]:
    for source in sorted(now.used, key=lambda host: (-now.used[host], host)):
        if now.used[source] and now.used[source] >= now.threshold:
            for vm in _movable(snapshot, cluster_id, source, now.measure):
                if hosts := admitted(snapshot, vm, _targets(snapshot, now, source, vm)):
                    yield BalanceMove(vm.id, hosts)


def _targets(snapshot: Snapshot, now: Spread, source: str, vm: Vm) -> tuple[str, ...]:
    """Hosts below the share that stay below the source, the emptiest first; never a failover host."""
    fits = (
        host
        for host, there in now.used.items()
        if there < now.share
        and there + added(snapshot, vm, host, now.measure) < now.used[source]
        and not kept_free(snapshot, host)
    )
    return tuple(sorted(fits, key=lambda host: (now.used[host], host)))


def _movable(snapshot: Snapshot, cluster_id: str, source: str, measure: Measure) -> Iterator[Vm]:
    """The source's highly available VMs that may be migrated now: the largest first, then by id."""
    vms = [snapshot.vm_by_id[vm] for vm in ha_vms_of(snapshot).get((cluster_id, source), ())]
    for vm in sorted(vms, key=lambda vm: (-added(snapshot, vm, source, measure), vm.id)):
        if vm.host == source and may_move(snapshot, vm):
            yield vm
