"""What becomes of hosts that fail or are emptied for maintenance: who goes where, who finds no host.

The engine itself drops hard rules between VMs when it drains a host (its configuration value
`IgnoreVmToVmAffinityForHostMaintenance`); a host that is empty already leaves it nothing to drop: it is
emptied by migrations that keep every rule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.site import COMES, Leaving, leaving
from ovirt_placement.planning.plan import NEVER, Deadline, Obstacle, ObstacleKind, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, asking
from ovirt_placement.planning.steps import end_of
from ovirt_placement.rules.catalogue import order
from ovirt_placement.rules.doubts import doubt, under_way
from ovirt_placement.rules.elements.placement import World, expected_by_engine, moved_by_engine
from ovirt_placement.rules.elements.resources import required_mb, vms_coming_to
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import Reason
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET, Starts
from ovirt_placement.rules.failover.failures import judge_failures
from ovirt_placement.rules.failover.outcomes import FailureUnit, ForeseenFailures, Loss, find_lost
from ovirt_placement.rules.failover.restart_check import RestartOrder, restart_order


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
class Outage:
    """What would happen, and the state at its end."""

    #: In the order of the starts.
    starts: tuple[Start, ...]
    #: VMs that would stay down, since they are not highly available.
    stopped: tuple[str, ...]
    end: Snapshot

    @property
    def unplaced(self) -> tuple[Start, ...]:
        return tuple(start for start in self.starts if start.host is None)


def foresee_outage(snapshot: Snapshot, down: Sequence[str], starting: Iterable[str]) -> Outage:
    """Hosts fail and their highly available VMs start again; then VMs that are down start one by one."""
    lost = [vm for host in down for vm in snapshot.vms_of_host.get(host, ())]
    state = World(snapshot).failed(frozenset(down)).snapshot
    starts: list[Start] = []
    for cluster in dict.fromkeys(snapshot.host_by_id[host].cluster for host in down):
        failing = tuple(host for host in down if snapshot.host_by_id[host].cluster == cluster)
        found, state = _restarted(snapshot, state, cluster, failing)
        starts += found
    found, state = start_in_turn(state, dict.fromkeys(starting))
    return Outage((*starts, *found), tuple(vm.id for vm in lost if not vm.ha), state)


def _restarted(
    before: Snapshot, state: Snapshot, cluster: str, failing: tuple[str, ...]
) -> tuple[list[Start], Snapshot]:
    """Each goes to the best host, in the order of restarts; where one has no home then, by the proof's."""
    measure = Starts(before, cluster, everywhere=True)
    proven = judge_failures(before, measure, 1, DEFAULT_BUDGET, units=[FailureUnit(failing)])
    homes = next((survival.homes for survival in proven.survivals), {})
    former = _former(before, failing)
    order = restart_order(before).ordered(dict.fromkeys((*homes, *largest_first(before, former))))
    starts, end = start_in_turn(state, {vm: former[vm] for vm in order})
    if homes and any(start.host is None for start in starts):
        starts = [Start(vm, host, former[vm]) for vm, host in homes.items()]
        end = World(state).running(homes).snapshot
    return starts, end


def _former(snapshot: Snapshot, failing: Iterable[str]) -> dict[str, str]:
    """The hosts of the highly available VMs that fail with them."""
    return {vm.id: host for host in failing for vm in snapshot.vms_of_host.get(host, ()) if vm.ha}


def largest_first(snapshot: Snapshot, vms: Iterable[str]) -> list[str]:
    """VMs in the order in which they start where nothing else says one."""
    return sorted(vms, key=lambda vm: (-snapshot.vm_by_id[vm].memory_mb, vm))


def start_in_turn(state: Snapshot, former: Mapping[str, str | None]) -> tuple[list[Start], Snapshot]:
    """Start VMs one after another, each on the best host by then; `former` has the hosts that they ran on."""
    starts = []
    for vm, before in former.items():
        found = order(state, state.vm_by_id[vm])
        if found.hosts:
            host = found.hosts[0].host
            starts.append(Start(vm, host, before))
            state = World(state).running({vm: host}).snapshot
        else:
            given = (rules for one in found.refused for reason, rules in one.reasons if reason.kind.veto)
            refused_by = dict.fromkeys(rule for rules in given for rule in rules)
            starts.append(Start(vm, None, before, tuple(refused_by)))
    return starts, state


@dataclass(frozen=True, slots=True)
class UnplacedVm:
    """A VM without a host, and why each host that is up refuses it."""

    vm: str
    #: Empty for a host that would take it, but not together with the others.
    refused: tuple[tuple[str, tuple[Reason, ...]], ...]


def why_unplaced(snapshot: Snapshot, loss: Loss) -> Iterator[UnplacedVm]:
    """Let the hosts fail and the other highly available VMs start where they can, and ask about those left.

    Where the order alone is to blame, each is asked about when it is its turn.
    """
    state = failing = World(snapshot).failed(frozenset(loss.hosts)).snapshot
    restarts = restart_order(snapshot)
    if not loss.otherwise:
        state = World(failing).running(loss.homes).snapshot
    for name in loss.unplaced:
        if loss.otherwise:
            state = _at_its_turn(failing, loss, restarts, name)
        found = order(state, state.vm_by_id[name])
        refused = [
            (judgement.host, tuple(reason for reason, _ in judgement.reasons if reason.kind.veto))
            for judgement in found.refused
            if state.host_by_id[judgement.host].up
        ]
        yield UnplacedVm(name, (*((one.host, ()) for one in found.hosts), *refused))


def _at_its_turn(failing: Snapshot, loss: Loss, order: RestartOrder, name: str) -> Snapshot:
    """The state once all have started that need not start after a VM."""
    state, later = failing, frozenset({name})
    for vm, home in loss.homes.items():
        if order.must_follow(vm, later):
            later |= {vm}
        else:
            state = World(state).running({vm: home}).snapshot
    return state


# -- How many hosts may fail at once, so that every highly available VM starts again.
#: This many failing hosts are looked at, where a cluster is not set to survive more.
_USUALLY: Final = 2


def survived(snapshot: Snapshot, cluster: str) -> ForeseenFailures | None:
    """How many hosts may fail: none while a VM is lost already; None if there is no highly available VM.

    Of what is not known yet nothing is proven; what is on its way a failure may meet at either end.
    """
    if find_lost(snapshot, cluster):
        return ForeseenFailures(0, exact=True)
    if not any(vm.ha and vm.cluster == cluster and vm.host for vm in snapshot.vms):
        return None
    coming = under_way(snapshot, cluster)
    if doubt(snapshot, cluster) or coming.leaving:
        return ForeseenFailures(0, exact=False)
    found = []
    for state in filter(None, (snapshot, coming.end)):
        measure = Starts(state, cluster)
        most = min(len(measure.hosts), max(_USUALLY, snapshot.cluster_by_id[cluster].ha_failures))
        found.append(judge_failures(state, measure, most, DEFAULT_BUDGET).survived_at_once(most))
    return min(found, key=lambda one: (one.count, not one.exact))


@dataclass(frozen=True, slots=True)
class Staying:
    """A VM that cannot leave its host."""

    vm: str
    host: str
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class Evacuation:
    """What it takes to empty hosts of one cluster."""

    cluster: str
    hosts: tuple[str, ...]
    plan: Plan
    #: VMs that the engine itself moves, each with the host that it is expected on.
    by_engine: tuple[tuple[str, str], ...]
    #: VMs that no migration of the plan takes off these hosts, or that are on their way there.
    staying: tuple[Staying, ...]


def evacuate(
    state: Snapshot, hosts: Sequence[str], deadline: Deadline = NEVER
) -> tuple[tuple[Evacuation, ...], Snapshot]:
    """Empty hosts, cluster by cluster, and deactivate them; the state at the end.

    A host that some VM cannot leave does not arrive in maintenance: it remains in preparing_for_maintenance.
    """
    found = []
    for cluster in dict.fromkeys(state.host_by_id[host].cluster for host in hosts):
        concerned = tuple(host for host in hosts if state.host_by_id[host].cluster == cluster)
        evacuation = _evacuation(state, cluster, concerned, deadline)
        state = World(end_of(state, evacuation.plan.steps)).migrated(dict(evacuation.by_engine)).snapshot
        found.append(evacuation)
    return tuple(found), World(state).deactivated(frozenset(hosts)).snapshot


def _evacuation(state: Snapshot, cluster: str, hosts: tuple[str, ...], deadline: Deadline) -> Evacuation:
    to_leave = tuple(leaving(state, hosts))
    asked = (one for one in to_leave if not moved_by_engine(state.vm_by_id[one.vms[0]]))
    options = asking(state, cluster, asked, hosts)
    plan = repeated_plan(state, cluster, options, deadline)
    free_mb = {
        host.id: host.free_mb
        for host in end_of(state, plan.steps).hosts_of_cluster[cluster]
        if host.up and host.id not in hosts
    }
    by_engine: list[tuple[str, str]] = []
    where = {one.vms[0]: state.vm_by_id[one.vms[0]].host or "" for one in to_leave}
    staying = [
        Staying(vm, where[vm], remaining.obstacles)
        for remaining in plan.remaining
        if remaining.family == Leaving.family
        for vm in remaining.vms
    ]
    for one in to_leave:
        if one not in options.constraints:
            (vm,) = one.vms
            host = expected_by_engine(required_mb(state.vm_by_id[vm]), free_mb.__getitem__, free_mb)
            if host is None:
                staying.append(Staying(vm, where[vm], (Obstacle(ObstacleKind.NO_HOST),)))
            else:
                by_engine.append((vm, host))
    for host in hosts:
        for coming in vms_coming_to(state).get(host, ()):
            if coming.id not in where:
                why = Obstacle(ObstacleKind.HOST_AWAY, reasons=(Reason(COMES, vm=coming.id),))
                staying.append(Staying(coming.id, host, (why,)))
    return Evacuation(cluster, hosts, plan, tuple(by_engine), tuple(staying))


# -- A plan for as much as can be repaired: made again from its end where a first one leaves something.
#: The share of the time for the first plan, and how many others may follow it.
_FIRST_SHARE = 0.7
_MOST_PLANS = 5


def repeated_plan(state: Snapshot, cluster: str, options: PlanOptions, deadline: Deadline) -> Plan:
    """Plan as the enforcer does, which plans again in each cycle until nothing more can be repaired."""
    whole = latest = make_plan(state, cluster, options=options, deadline=deadline.within(_FIRST_SHARE))
    for _ in range(_MOST_PLANS):
        if latest.proven or not latest.steps or deadline.over:
            break
        latest = make_plan(end_of(state, whole.steps), cluster, options=options, deadline=deadline)
        whole = _joined(whole, latest)
    return whole


def _joined(first: Plan, then: Plan) -> Plan:
    count = len(first.steps)
    later = (
        replace(step, after=tuple(count + place for place in step.after) or tuple(range(count)))
        for step in then.steps
    )
    return replace(
        first,
        steps=(*first.steps, *later),
        remaining=then.remaining,
        seconds=first.seconds + then.seconds,
        proven=False,
    )
