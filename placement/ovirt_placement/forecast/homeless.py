"""Why VMs find no host when others fail: what the hosts that are left say once all others have started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.scheduling.ranking import Ranking, order
from ovirt_placement.rules.world import World


@dataclass(frozen=True, slots=True)
class HomelessVm:
    """A VM without a host, and why each host that is up refuses it."""

    vm: str
    #: Empty for a host that would take it, but not together with the others.
    refused: tuple[tuple[str, tuple[Reason, ...]], ...]


def why_homeless(snapshot: Snapshot, failed: Iterable[str], homeless: Iterable[str]) -> Iterator[HomelessVm]:
    """Let hosts fail and all other highly available VMs start, largest first, and ask about those left."""
    gone, left = frozenset(failed), tuple(homeless)
    state = World(snapshot).failed(gone).snapshot
    lost = (vm for host in sorted(gone) for vm in snapshot.vms_of_host.get(host, ()))
    others = (vm for vm in lost if vm.ha and vm.id not in left)
    for vm in sorted(others, key=lambda vm: (-vm.memory_mb, vm.id)):
        home = next(iter(order(state, state.vm_by_id[vm.id]).hosts), None)
        if home is not None:
            state = World(state).running(vm.id, home.host).snapshot
    for name in left:
        ranking = order(state, state.vm_by_id[name])
        yield HomelessVm(name, tuple(_refusals(state, ranking)))


def _refusals(state: Snapshot, ranking: Ranking) -> Iterator[tuple[str, tuple[Reason, ...]]]:
    yield from ((one.host, ()) for one in ranking.hosts)
    for one in ranking.refused:
        if state.host_by_id[one.host].up:
            yield one.host, tuple(reason for reason, _ in one.reasons if reason.kind.veto)
