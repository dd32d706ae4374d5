"""The balance of HA reservation: one highly available VM away from a host that holds too many."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules import host_affinity, vm_affinity
from ovirt_placement.rules.ha_vms import ha_vms_of
from ovirt_placement.rules.verdict import Request, Struct

#: Percent of the even share from which on a host holds too many; the engine's default.
OVER_UTILIZATION = 200


class Move(Struct, frozen=True):
    """A VM to migrate and the hosts that may take it, the best first."""

    vm: str
    hosts: tuple[str, ...]


def balance(
    snapshot: Snapshot,
    cluster_id: str,
    candidate_hosts: tuple[str, ...],
    over_utilization: int = OVER_UTILIZATION,
) -> Move | None:
    """Choose a highly available VM to move, if that makes the cluster more even; None if all is well.

    A host is overloaded from `over_utilization` percent of the even share on. The VM goes to hosts below the
    share, and only if it leaves its host fuller than it makes the other (HA3, HA6); the fullest host
    that has a movable VM comes first (HA5, HA8). Sources and shares are counted over the same hosts (HA7).
    """
    if not snapshot.cluster_by_id[cluster_id].ha_reservation or len(candidate_hosts) < 2:
        return None
    counts = {host: len(ha_vms_of(snapshot).get((cluster_id, host), ())) for host in candidate_hosts}
    share = ceil(sum(counts.values()) / len(candidate_hosts))
    threshold = ceil(share * over_utilization / 100)
    for source in sorted(candidate_hosts, key=lambda host: (-counts[host], host)):
        if counts[source] and counts[source] >= threshold:
            targets = _targets(snapshot, counts, source, share)
            for vm in _movable(snapshot, cluster_id, source):
                if hosts := _admitted(snapshot, vm, targets):
                    return Move(vm.id, hosts)
    return None


def _targets(snapshot: Snapshot, counts: dict[str, int], source: str, share: int) -> tuple[str, ...]:
    """Hosts below the share that stay below the source, the emptiest first; never a failover host."""
    known = snapshot.host_by_id
    below = (host for host in counts if counts[host] < share and counts[host] + 1 < counts[source])
    free = (host for host in below if host not in known or not known[host].failover)
    return tuple(sorted(free, key=lambda host: (counts[host], host)))


def _movable(snapshot: Snapshot, cluster_id: str, source: str) -> Iterator[Vm]:
    """The source's highly available VMs that may be migrated now, by id."""
    vms = (snapshot.vm_by_id[vm] for vm in sorted(ha_vms_of(snapshot).get((cluster_id, source), ())))
    for vm in vms:
        if vm.movable and vm.host == source and vm.status == "up" and vm.id not in snapshot.pending_hosts:
            yield vm


def _admitted(snapshot: Snapshot, vm: Vm, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The targets that both hard affinity rules admit: the engine would not choose any other."""
    request = Request((vm.id,), targets)
    refused = {
        verdict.host
        for judge in (vm_affinity.filter_hosts, host_affinity.filter_hosts)
        for verdict in judge(snapshot, request)
        if not verdict.accepted
    }
    return tuple(host for host in targets if host not in refused)
