"""Whether highly available VMs survive failures in a state of a maintenance, as well as at the beginning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.ha_repair.failing import Failing, failing
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.rules.failover.units import Domain
from ovirt_placement.rules.world import World


class Reserve:
    """What a cluster is set to survive; nothing is asked where it reserves nothing."""

    def __init__(self, snapshot: Snapshot, cluster: str, domains: Sequence[Domain]) -> None:
        self._cluster = cluster
        self._domains = domains
        reserves = snapshot.cluster_by_id[cluster].ha_reservation
        protects = any(vm.ha and vm.cluster == cluster and vm.host for vm in snapshot.vms)
        self.start = self._failing(snapshot) if reserves and protects else None

    def worse(self, state: Snapshot) -> Failing | None:
        """What is lost in a state, if it is more than at the beginning: failures, or VMs in sum over all.

        What nobody can report for lack of steps counts as lost, unless it was so at the beginning.
        """
        if self.start is None:
            return None
        found = self._failing(state)
        if len(found.sets) <= len(self.start.sets) and found.unplaced <= self.start.unplaced:
            return found if found.unknown and not self.start.unknown else None
        return found

    def _failing(self, state: Snapshot) -> Failing:
        return failing(state, self._cluster, self._domains)


def moved(state: Snapshot, moves: Iterable[Move]) -> Snapshot:
    """The state after moves."""
    ends = {vm: move.host for move in moves for vm in move.vms}
    where = {vm: host for vm, host in ends.items() if state.vm_by_id[vm].host != host}
    return World(state).migrated(where).snapshot if where else state


def out(state: Snapshot, hosts: Collection[str], stopped: Collection[str]) -> Snapshot:
    """The state while hosts are out, and VMs on them down that were stopped."""
    if stopped:
        down = {vm: replace(state.vm_by_id[vm], host=None, status="down") for vm in stopped}
        state = replace(state, vms=tuple(down.get(vm.id, vm) for vm in state.vms))
    return World(state).deactivated(frozenset(hosts)).snapshot
