"""What `why` accepts is where the engine lets a VM start or go to, and what it refuses is refused.

Generated clusters stand in a simulated engine, which is asked over its REST API by the SDK and asks a real
proxy; the policy has all filters, the engine's own and ours. The simulator's rules are not ours. Of placement
rules of every kind `why`, units, planner and engine say the same, and so do the rules written a second time.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import ovirtsdk4
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from msgspec.structs import replace
from ovirtsdk4 import types

from ovirt_placement.answers.placement import JudgedHost, why
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.requests import make_room
from ovirt_placement.rules.catalogue import order
from ovirt_placement.rules.placement_rules.in_force import KINDS
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.configuration import PASSWORD
from tests.examples import examples
from tests.integration.worlds import FILTERS, WEIGHTS, policies, whole_policies, worlds
from tests.placement.rules.placement_rules.oracle import concerns, lets, running
from tests.placement.rules.strategies import FOREIGN, HOSTS, VMS
from tests.plugins.published import Publisher

EXAMPLES = settings(
    deadline=None,
    # To shrink a failure takes minutes of starting engines.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

#: One host in four has room for one VM, two VMs or none; the others have plenty.
MEMORY = (*(32768,) * 9, 512, 2500, 3500)


class Attempts(AbstractContextManager["Attempts"]):
    """An engine in one state; after each attempt that succeeds, another engine in the same state."""

    def __init__(self, state: Snapshot, proxy: str) -> None:
        self._proxy = proxy
        self._begin(state)
        #: As the engine has it, which is what the inventory publishes.
        self.state = self._engine.snapshot()

    def starts(self, vm_id: str, host_id: str | None = None) -> str | None:
        """Where a VM goes when it is started, on no other host than the one named; None if refused."""
        policy = types.VmPlacementPolicy(hosts=[types.Host(id=host_id)]) if host_id else None
        try:
            self._vm(vm_id).start(vm=types.Vm(placement_policy=policy) if policy else None)
        except ovirtsdk4.Error as refusal:
            _check(refusal)
            return None
        self._engine.advance(60)
        found = self._engine.queries.state.vms.get(vm_id)
        self._end()
        self._begin(self.state)
        return found.host

    def moves(self, vm_id: str, host_id: str, going: list[Vm]) -> bool:
        """Whether the engine lets a running VM go to a host, with its peers where others go, too."""
        closure = len(going) > 1
        try:
            self._vm(vm_id).migrate(host=types.Host(id=host_id), migrate_vms_in_affinity_closure=closure)
        except ovirtsdk4.Error as refusal:
            _check(refusal)
            return False
        # Several that an external filter alone refuses the engine accepts, and leaves where they are.
        goes = self._engine.queries.state.vms[vm_id].status == "migrating"
        self._end()
        self._begin(self.state)
        return goes

    def _begin(self, state: Snapshot) -> None:
        clock = datetime(2026, 1, 1, tzinfo=UTC)
        self._engine = Engine.from_snapshot(state, clock=clock, settings=PROMPT, proxy=self._proxy)
        self._server = serve(self._engine)
        self._connection = ovirtsdk4.Connection(self._server.api_url, "admin@internal", PASSWORD)

    def _vm(self, vm_id: str) -> ovirtsdk4.services.VmService:
        return self._connection.system_service().vms_service().vm_service(vm_id)

    def _end(self) -> None:
        self._connection.close()
        self._server.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


def _check(refusal: ovirtsdk4.Error) -> None:
    """Raise what is no word of the engine's filters."""
    if refusal.code not in (400, 409):
        raise refusal


def accepted(state: Snapshot, one: Vm, hosts: tuple[str, ...]) -> set[str]:
    answers = why(state, one, [state.host_by_id[each] for each in hosts]).hosts
    return {answer.host.id for answer in answers if answer.accepted}


def stopped(state: Snapshot, vms: tuple[str, ...]) -> Snapshot:
    """The same with these VMs down, and on their way to nowhere."""
    pending = tuple(one for one in state.pending if one.vm not in vms)
    down = [replace(one, host=None, status="down") if one.id in vms else one for one in state.vms]
    return replace(state, pending=pending, vms=tuple(down))


def tied(state: Snapshot, vm_id: str) -> set[str]:
    """The VM and all that hard positive groups tie to it, in chains, as an administrator would find them."""
    groups = [
        {*each.vms, *(member for name in each.vm_labels for member in state.label_by_id[name].vms)}
        for each in state.affinity_groups
        if each.vms_rule.enabled and each.vms_rule.enforcing and each.vms_rule.positive
    ]
    found, before = {vm_id}, set[str]()
    while found != before:
        before = found
        found = found.union(*(each for each in groups if each & found))
    return found


def by_hand(state: Snapshot, one: Vm) -> set[str]:
    """The hosts that all hard placement rules let a VM come to, by the second writing of the rules."""
    at = running(state)
    hard = [rule for rule in state.placement_rules if rule.enforcing and concerns(rule, state, one.id)]
    return {host for host in HOSTS if all(lets(rule, state, at, one.id, host) for rule in hard)}


def by_unit(proxy: Any, state: Snapshot, one: Vm) -> set[str]:
    parameters = dict(state.cluster_by_id[one.cluster].scheduling_properties)
    return set(proxy.runFilters(["PlacementRuleFilter"], list(HOSTS), one.id, parameters)["result"])


def stands_still(state: Snapshot) -> bool:
    """Whether nothing is on its way: the second writing does not say where such VMs count."""
    return not state.pending and all(one.status != "migrating" for one in state.vms)


#: Of no more worlds than these, by chance each may let all VMs start everywhere.
FEW = 15
#: A kind of placement rule that worlds have, none for any or none of them; and how many worlds.
MANY = [
    pytest.param(None, FEW, id="any"),
    *(pytest.param(kind, 2, id=f"{kind}-few") for kind in KINDS),
    *(pytest.param(kind, examples(40), id=f"{kind}-many", marks=pytest.mark.nightly) for kind in KINDS),
]


@pytest.mark.system
@pytest.mark.parametrize(("kind", "many"), MANY)
def test_a_vm_that_is_down_starts_on_the_hosts_that_why_accepts(
    publisher: Publisher, proxy: Any, url: str, kind: str | None, many: int
) -> None:
    closed = compared = 0

    @settings(EXAMPLES, max_examples=many)
    @given(worlds(whole_policies(), MEMORY, kind))
    def start(state: Snapshot) -> None:
        nonlocal closed, compared
        with Attempts(stopped(state, VMS[:3]), url) as engine:
            publisher.publish(engine.state)
            for one in [engine.state.vm_by_id[name] for name in VMS[:3]]:
                reported, ours = accepted(engine.state, one, HOSTS), by_unit(proxy, engine.state, one)
                assert reported <= ours
                if stands_still(engine.state):
                    assert ours == by_hand(engine.state, one)
                    compared += 1
                closed += len(HOSTS) - len(ours)
                assert reported == {each for each in HOSTS if accepted(engine.state, one, (each,))}
                assert reported == {found.host for found in order(engine.state, one).hosts}
                room = make_room(engine.state, one.id)
                assert (room.plan.steps == () and room.host is not None) is bool(reported)
                assert reported == {each for each in HOSTS if engine.starts(one.id, each)}
                assert engine.starts(one.id) in (reported or {None})

    start()
    assert (closed and compared) or many <= FEW


@pytest.mark.system
@pytest.mark.parametrize(("kind", "many"), MANY)
def test_a_vm_that_runs_goes_to_the_hosts_that_why_accepts(
    publisher: Publisher, url: str, kind: str | None, many: int
) -> None:
    @settings(EXAMPLES, max_examples=many)
    @given(worlds(whole_policies(), MEMORY, kind))
    def migrate(state: Snapshot) -> None:
        with Attempts(freed(state), url) as engine:
            publisher.publish(engine.state)
            without_reserve = without(engine.state, "HaAdmissionFilter")
            for one in [engine.state.vm_by_id[name] for name in VMS[:4]]:
                going = who_goes(engine.state, one)
                if not all(moves_freely(engine.state, each) for each in going):
                    continue
                for target in HOSTS:
                    if target == one.host:
                        continue
                    reported = all(accepted(engine.state, each, (target,)) for each in going)
                    assert engine.moves(one.id, target, going) is reported, (one.id, target)
                    if len(going) > 1 or one.host is None or one.hosted_engine:
                        continue
                    step = Step(vms=(one.id,), sources=(one.host,), target=target, groups=(), repairs=())
                    # A plan takes no VM away from its peers, and keeps the reserve for failures.
                    assert reported or not legal(engine.state, step)
                    if tied(engine.state, one.id) == {one.id}:
                        assert legal(without_reserve, step) is reported, (one.id, target)

    migrate()


def without(state: Snapshot, unit: str) -> Snapshot:
    """The same where no policy has this filter."""
    clusters = []
    for one in state.clusters:
        policy = one.scheduling_policy
        filters = tuple(name for name in policy.filters if name != unit) if policy else ()
        clusters.append(replace(one, scheduling_policy=policy and replace(policy, filters=filters)))
    return replace(state, clusters=tuple(clusters))


def freed(state: Snapshot) -> Snapshot:
    """The same with no VM bound to where it is."""
    return replace(state, vms=tuple(replace(one, migratable=True) for one in state.vms))


def who_goes(state: Snapshot, one: Vm) -> list[Vm]:
    """The VM, and its peers where the engine takes them along: all that run are where it is."""
    peers = [state.vm_by_id[each] for each in sorted(tied(state, one.id) - {one.id})]
    running = [each for each in peers if each.host is not None]
    return [one, *running] if {each.host for each in running} == {one.host} else [one]


def moves_freely(state: Snapshot, one: Vm) -> bool:
    """Whether nothing but filters can stop its migration, and it has no part in two clusters."""
    on_its_way = any(each.vm == one.id for each in state.pending)
    return one.status == "up" and one.migratable and not on_its_way and FOREIGN not in tied(state, one.id)


# -- What `why` and `where` say for our part is what the policy units answer through the proxy.
def counts(state: Snapshot, unit: str, enabled: bool) -> bool:
    """Whether `why` asks a unit: some only where the policy enables them."""
    return enabled or not unit.startswith(("PlacementKey", "HardAffinityWeight", "HaAdmission"))


def refused_by_us(answer: JudgedHost) -> bool:
    vetoes = (reason for reason in answer.reasons if reason.veto)
    return any(not unit.internal for reason in vetoes for unit in reason.by)


def let_through(proxy: Any, unit: str, hosts: Sequence[str], vm: str, parameters: dict[str, str]) -> set[str]:
    return set(proxy.runFilters([unit], list(hosts), vm, parameters)["result"])


def check(state: Snapshot, proxy: Any) -> None:
    cluster = state.cluster_by_id[CLUSTER]
    policy, given_parameters = cluster.scheduling_policy, dict(cluster.scheduling_properties)
    enabled = set(policy.filters) if policy else set()
    for one in (state.vm_by_id[name] for name in VMS[:3]):
        for hosts in (HOSTS, *((each,) for each in HOSTS)):
            answer = why(state, one, [state.host_by_id[each] for each in hosts])
            # The engine offers a VM that leaves its host with its peers the others without that.
            away, home = ([each for each in hosts if (each == one.host) is at] for at in (False, True))
            offers = (away, home) if answer.moves_with else (hosts,)
            left = set(hosts)
            for unit in FILTERS:
                if counts(state, unit, unit in enabled):
                    asked = (let_through(proxy, unit, some, one.id, given_parameters) for some in offers)
                    left &= set().union(*asked)
            assert {each.host.id for each in answer.hosts if not refused_by_us(each)} == left
        ordered = order(state, one)
        ranked = [host for host in HOSTS if host in {found.host for found in ordered.hosts}]
        weighing = {unit for unit, factor in (policy.weights if policy else {}).items() if factor}
        for unit in WEIGHTS:
            ranks = unit in weighing if policy else counts(state, unit, False)
            if ranks and ranked:
                reported = {host: found.rank for host, found in ordered.weights[unit].items()}
                answer = proxy.runCostFunctions([[unit, 1]], ranked, one.id, given_parameters)["result"]
                assert reported == {host: weight for host, weight, _ in answer}


@pytest.mark.system
@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(worlds(policies()))
def test_through_the_proxy(publisher: Publisher, proxy: Any, state: Snapshot) -> None:
    publisher.publish(state)
    check(state, proxy)


def test_a_migration_that_drains_a_host_is_accepted_by_both(publisher: Publisher, proxy: Any) -> None:
    state = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b"))
    publisher.publish(state)
    assert let_through(proxy, "AffinityFilter", ["h2"], "a", {}) == {"h2"}
    for hosts in (state.hosts[1:], state.hosts):
        reported = why(state, state.vm_by_id["a"], hosts).hosts[-1]
        assert reported.accepted
        assert [reason.kind for reason in reported.reasons] == ["group_moves_along"]
