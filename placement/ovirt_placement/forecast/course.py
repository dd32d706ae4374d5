"""What would happen if hosts failed and VMs started: who goes where, who finds no host, how many may fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import Reason
from ovirt_placement.rules.elements.world import World
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import FailureUnit, Loss, Proven, Survival, find_lost
from ovirt_placement.rules.failover.restart_check import RestartOrder, restart_order
from ovirt_placement.rules.failover.starts import Starts
from ovirt_placement.rules.scheduling import Ranking, order
from ovirt_placement.rules.scheduling import order as order_of_hosts


@dataclass(frozen=True, slots=True)
class Start:
    """A VM that would start, and where."""

    vm: str
    #: None if every host refuses it.
    host: str | None
    #: The host that it ran on; None for one that was down.
    former: str | None
    #: The rules that refuse it, where every host does.
    refused_by: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """What would happen, and the state at its end."""

    #: In the order of the starts.
    starts: tuple[Start, ...]
    #: VMs that would stay down, since they are not highly available.
    stopped: tuple[str, ...]
    end: Snapshot

    @property
    def unplaced(self) -> tuple[Start, ...]:
        return tuple(start for start in self.starts if start.host is None)


def course(snapshot: Snapshot, down: Sequence[str], starting: Iterable[str]) -> Course:
    """Hosts fail and their highly available VMs start again; then VMs that are down start one by one."""
    lost = [vm for host in down for vm in snapshot.vms_of_host.get(host, ())]
    state = World(snapshot).failed(frozenset(down)).snapshot
    starts: list[Start] = []
    for cluster in dict.fromkeys(snapshot.host_by_id[host].cluster for host in down):
        found, state = _restarted(snapshot, state, cluster, down)
        starts += found
    for vm in starting:
        start, state = _started(state, vm, None)
        starts.append(start)
    return Course(tuple(starts), tuple(vm.id for vm in lost if not vm.ha), state)


def _restarted(
    before: Snapshot, state: Snapshot, cluster: str, down: Sequence[str]
) -> tuple[list[Start], Snapshot]:
    """Each goes to the best host, in the order of restarts; where one has no home then, by the proof's."""
    failing = tuple(host for host in down if before.host_by_id[host].cluster == cluster)
    proven = judge_failures(
        before, Starts(before, cluster, everywhere=True), 1, DEFAULT_BUDGET, units=[FailureUnit(failing)]
    )
    former = {vm.id: host for host in failing for vm in before.vms_of_host.get(host, ()) if vm.ha}
    survival = next(iter(proven.survivals), None)
    found = [*survival.homes] if survival is not None else []
    found += [vm for vm in largest_first(before, former) if vm not in found]
    order = restart_order(before).ordered(found)
    starts, end = start_in_turn(state, {vm: former[vm] for vm in order})
    if survival is not None and any(start.host is None for start in starts):
        return _by_witness(state, survival, former)
    return starts, end


def largest_first(snapshot: Snapshot, vms: Iterable[str]) -> list[str]:
    """VMs in the order in which they start where nothing else says one."""
    return sorted(vms, key=lambda vm: (-snapshot.vm_by_id[vm].memory_mb, vm))


def start_in_turn(state: Snapshot, former: Mapping[str, str]) -> tuple[list[Start], Snapshot]:
    """Start VMs one after another, each on the best host by then; `former` has the hosts that they ran on."""
    starts = []
    for vm, host in former.items():
        start, state = _started(state, vm, host)
        starts.append(start)
    return starts, state


def _by_witness(
    state: Snapshot, survival: Survival, former: Mapping[str, str]
) -> tuple[list[Start], Snapshot]:
    for vm, host in survival.homes.items():
        state = World(state).running(vm, host).snapshot
    return [Start(vm, host, former[vm]) for vm, host in survival.homes.items()], state


def _started(state: Snapshot, vm: str, former: str | None) -> tuple[Start, Snapshot]:
    found = order(state, state.vm_by_id[vm])
    if not found.hosts:
        given = (rules for host in found.refused for reason, rules in host.reasons if reason.kind.veto)
        return Start(vm, None, former, tuple(dict.fromkeys(rule for rules in given for rule in rules))), state
    host = found.hosts[0].host
    return Start(vm, host, former), World(state).running(vm, host).snapshot


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


# -- How many hosts may fail at once, so that every highly available VM starts again.
#: This many failing hosts are looked at, where a cluster is not set to survive more.
_USUALLY: Final = 2


class ForeseenFailures(Record, frozen=True, omit_defaults=False):
    """How many hosts may fail at once, whichever they are."""

    count: int
    #: Whether one more may surely not; else nobody looked, or it is not known.
    exact: bool


def survived(snapshot: Snapshot, cluster: str) -> ForeseenFailures | None:
    """How many hosts may fail: none while a VM is lost already; None if there is no highly available VM."""
    if find_lost(snapshot, cluster):
        return ForeseenFailures(0, exact=True)
    if not any(vm.ha and vm.cluster == cluster and vm.host for vm in snapshot.vms):
        return None
    measure = Starts(snapshot, cluster)
    most = min(len(measure.hosts), max(_USUALLY, snapshot.cluster_by_id[cluster].ha_failures))
    return survived_of(judge_failures(snapshot, measure, most, DEFAULT_BUDGET), most)


def survived_of(proven: Proven, most: int) -> ForeseenFailures:
    """How many hosts may fail, by what is proven of all sets of at most `most`."""
    lost = min((len(loss.hosts) for loss in proven.losses), default=most + 1)
    unknown = min(_unknown(proven), default=most + 1)
    return ForeseenFailures(min(lost, unknown) - 1, exact=lost <= min(unknown, most))


def _unknown(proven: Proven) -> Iterable[int]:
    """The sizes of sets that are not judged."""
    yield from (len(one.hosts) for one in proven.unknown)
    yield from (size.size for size in proven.sizes if size.unjudged)
