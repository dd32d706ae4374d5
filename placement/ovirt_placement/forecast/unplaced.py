"""Why VMs find no host when others fail: what the hosts that are left say once all others have started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ovirt_placement.forecast.course import largest_first, start_in_turn
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.scheduling.ranking import Ranking, order
from ovirt_placement.rules.world import World


@dataclass(frozen=True, slots=True)
class UnplacedVm:
    """A VM without a host, and why each host that is up refuses it."""

    vm: str
    #: Empty for a host that would take it, but not together with the others.
    refused: tuple[tuple[str, tuple[Reason, ...]], ...]


def why_unplaced(snapshot: Snapshot, failed: Iterable[str], unplaced: Iterable[str]) -> Iterator[UnplacedVm]:
    """Let hosts fail and all other highly available VMs start, largest first, and ask about those left."""
    gone, left = frozenset(failed), tuple(unplaced)
    former = {
        vm.id: host
        for host in gone
        for vm in snapshot.vms_of_host.get(host, ())
        if vm.ha and vm.id not in left
    }
    failing = World(snapshot).failed(gone).snapshot
    _, state = start_in_turn(failing, {vm: former[vm] for vm in largest_first(snapshot, former)})
    for name in left:
        ranking = order(state, state.vm_by_id[name])
        yield UnplacedVm(name, tuple(_refusals(state, ranking)))


def _refusals(state: Snapshot, ranking: Ranking) -> Iterator[tuple[str, tuple[Reason, ...]]]:
    yield from ((one.host, ()) for one in ranking.hosts)
    for one in ranking.refused:
        if state.host_by_id[one.host].up:
            yield one.host, tuple(reason for reason, _ in one.reasons if reason.kind.veto)
