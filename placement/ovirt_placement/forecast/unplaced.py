"""Why VMs find no host when others fail: what the hosts that are left say once all others have started."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ovirt_placement.forecast.course import largest_first, start_in_turn
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.outcomes import Loss
from ovirt_placement.rules.failover.restart_order import RestartOrder, restart_order
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.scheduling.ranking import Ranking
from ovirt_placement.rules.scheduling.ranking import order as order_of_hosts
from ovirt_placement.rules.world import World


@dataclass(frozen=True, slots=True)
class UnplacedVm:
    """A VM without a host, and why each host that is up refuses it."""

    vm: str
    #: Empty for a host that would take it, but not together with the others.
    refused: tuple[tuple[str, tuple[Reason, ...]], ...]


def why_unplaced(snapshot: Snapshot, loss: Loss) -> Iterator[UnplacedVm]:
    """Let the hosts fail and all other highly available VMs start in their order, and ask about those left.

    Where the order alone is to blame, each is asked about when it is its turn.
    """
    failing = World(snapshot).failed(frozenset(loss.hosts)).snapshot
    order = restart_order(snapshot)
    if not loss.otherwise:
        state = _others_started(snapshot, failing, loss, order)
    for name in loss.unplaced:
        if loss.otherwise:
            state = _at_its_turn(failing, loss, order, name)
        ranking = order_of_hosts(state, state.vm_by_id[name])
        yield UnplacedVm(name, tuple(_refusals(state, ranking)))


def _at_its_turn(failing: Snapshot, loss: Loss, order: RestartOrder, name: str) -> Snapshot:
    """The state once all have started that need not start after a VM."""
    state, later = failing, frozenset({name})
    for vm, home in loss.homes.items():
        if order.must_follow(vm, later):
            later |= {vm}
        else:
            state = World(state).running(vm, home).snapshot
    return state


def _others_started(snapshot: Snapshot, failing: Snapshot, loss: Loss, order: RestartOrder) -> Snapshot:
    """The state once all but those left have started, each on the best host: largest first."""
    former = {
        vm.id: host
        for host in loss.hosts
        for vm in snapshot.vms_of_host.get(host, ())
        if vm.ha and vm.id not in loss.unplaced
    }
    starting = order.ordered(largest_first(snapshot, former))
    return start_in_turn(failing, {vm: former[vm] for vm in starting})[1]


def _refusals(state: Snapshot, ranking: Ranking) -> Iterator[tuple[str, tuple[Reason, ...]]]:
    yield from ((one.host, ()) for one in ranking.hosts)
    for one in ranking.refused:
        if state.host_by_id[one.host].up:
            yield one.host, tuple(reason for reason, _ in one.reasons if reason.kind.veto)
