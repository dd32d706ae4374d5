"""States that are bad already, and what makes them worse; highly available VMs that are lost for now."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.watchers.verdict import ReservationState, judge
from ovirt_placement.answers.conflicts import conflicts
from ovirt_placement.answers.document import safe_word
from ovirt_placement.answers.status.clusters import Health, cluster_status
from ovirt_placement.answers.status.clusters import judge as judge_health
from ovirt_placement.config import HaSettings
from ovirt_placement.model import RuleDomain, Snapshot, Vm, state_file
from ovirt_placement.model.infrastructure import HOST_STATUSES
from ovirt_placement.planning.plan import ObstacleKind, Step
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement_web.site import environment
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests.builders import APART, CLUSTER, TOGETHER, cluster, group, host, needed_mb, rule, snapshot, vm
from tests.golden.questions import STATES, ask_about
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import distance, running
from tests.speed import of_processor

_HOSTS = ("h1", "h2", "h3")
_VMS = ("a", "b", "c", "d")
EACH = pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])


@EACH
def test_as_many_vms_apart_as_hosts_are_repaired_and_what_that_costs_is_said(name: StrategyName) -> None:
    found = ask_about(f"ovirt-enforcer plan --strategy {name}", "ha-apart-on-two-hosts")
    assert found.status == 3
    assert "1 migration" in found.text
    assert "failed afterwards, " in found.text
    assert "the rules that are repaired leave no other host" in found.text
    conflict = ask_about("ovirt-placement conflicts", "ha-apart-on-two-hosts")
    assert conflict.status == 1
    assert "cannot be satisfied together with the HA reservation: its VMs need 2 hosts" in conflict.text


def test_where_no_host_would_be_left_no_rule_is_to_blame() -> None:
    apart = rule("r", "at_most_per_host", "a", most=1)
    state = snapshot(cluster(ha_reservation=True), host("h1"), vm("a", "h1", ha=True), apart)
    (found,) = conflicts(state, state.clusters).clusters
    assert found.unreserved == ()


@pytest.mark.parametrize(("restarting", "without_room"), [("a", False), ("a b", False), ("a b c", True)])
def test_vms_that_do_not_restart_leave_room_to_those_that_do(restarting: str, without_room: bool) -> None:
    """Five on three hosts, two on each at most: whose host fails finds room where one is alone."""
    vms = [vm(name, ha=name in restarting.split()) for name in "abcde"]
    pairs = rule("r", "at_most_per_host", "a b c d e", most=2)
    state = snapshot(cluster(ha_reservation=True), *map(host, ("h1", "h2", "h3")), *vms, pairs)
    (found,) = conflicts(state, state.clusters).clusters
    assert bool(found.unreserved) is without_room


@EACH
def test_three_masters_on_two_hosts_after_a_drain_get_the_third(name: StrategyName) -> None:
    masters = [vm(each, at, ha=True) for each, at in (("m1", "h1"), ("m2", "h2"), ("m3", "h1"))]
    apart = group("g", APART, "m1 m2 m3")
    state = snapshot(cluster(ha_reservation=True), *map(host, _HOSTS), *masters, apart)
    plan = make_plan(state, CLUSTER, strategy=strategy(name))
    assert ([step.target for step in plan.steps], plan.remaining) == (["h3"], ())


@EACH
@pytest.mark.parametrize("continuous", [True, False])
def test_two_sets_on_every_host_are_separated_set_by_set(name: StrategyName, continuous: bool) -> None:
    vms = [vm(f"{one}{at}", f"h{at}") for one in "xy" for at in (1, 2)]
    apart = rule("r", "separate", "x1 x2", other_vms="y1 y2", continuous=continuous)
    state = snapshot(host("h1"), host("h2"), *vms, apart)
    plan = make_plan(state, CLUSTER, strategy=strategy(name))
    assert (plan.migrations, plan.remaining) == (2, ())


@EACH
def test_three_sets_on_each_of_three_hosts_are_separated(name: StrategyName) -> None:
    sets = [" ".join(f"{one}{at}" for at in range(3)) for one in "xyz"]
    rules = [
        rule(f"r{first}{second}", "separate", sets[first], other_vms=sets[second])
        for first, second in ((0, 1), (0, 2), (1, 2))
    ]
    vms = [vm(each, f"h{each[1]}") for one in sets for each in one.split()]
    state = snapshot(host("h0"), host("h1"), host("h2"), *vms, *rules)
    plan = make_plan(state, CLUSTER, strategy=strategy(name), deadline=of_processor(20))
    assert (plan.migrations, plan.remaining) == (6, ())


@EACH
def test_of_two_failure_domains_with_as_many_the_one_with_room_takes_all(name: StrategyName) -> None:
    domains = (RuleDomain(name="full", hosts=("h1",)), RuleDomain(name="wide", hosts=("h2", "h3")))
    hosts = (host(each, free_mb=mb) for each, mb in (("h1", 1024), ("h2", 1024), ("h3", 8192)))
    vms = (vm(each, at) for each, at in (("a", "h1"), ("b", "h1"), ("c", "h2"), ("d", "h2")))
    state = snapshot(*hosts, *vms, rule("r", "same_domain", "a b c d", domains=domains))
    plan = make_plan(state, CLUSTER, strategy=strategy(name))
    assert ({(step.vms, step.target) for step in plan.steps}, plan.remaining) == (
        {(("a",), "h3"), (("b",), "h3")},
        (),
    )


def test_a_rule_that_binds_a_vm_to_one_host_costs_its_restart() -> None:
    bound = group("g", hosts_rule=TOGETHER, vms="a", hosts="h1")
    state = snapshot(cluster(ha_reservation=True), host("h1"), host("h2"), vm("a", "h2", ha=True), bound)
    plan = make_plan(state, CLUSTER)
    assert [step.target for step in plan.steps] == ["h1"]
    assert [(one.hosts, one.vms) for one in plan.costs] == [(("h1",), ("a",))]


@st.composite
def states(draw: st.DrawFn) -> Snapshot:
    """Hosts with and without room, under rules of any kinds, some of them violated."""
    hosts = [host(name, free_mb=draw(st.sampled_from([0, 1024, 8192, 8192]))) for name in _HOSTS]
    vms = [vm(name, draw(st.sampled_from(_HOSTS)), migratable=draw(st.integers(0, 5)) > 0) for name in _VMS]
    rules = [
        draw(placement_rules(f"r{at}", _VMS, _HOSTS, enforcing=True)) for at in range(draw(st.integers(1, 3)))
    ]
    return snapshot(*hosts, *vms, *rules)


def improving(state: Snapshot) -> list[tuple[str, str]]:
    """VMs with hosts that have room, where no rule is further from being satisfied, and one is nearer."""
    at = running(state)
    now = [distance(one, state, at) for one in state.placement_rules]
    found = []
    for one in state.vms:
        for to in state.hosts:
            if one.migratable and to.id != one.host and to.free_mb >= needed_mb(one):
                then = [distance(rule, state, {**at, one.id: to.id}) for rule in state.placement_rules]
                if then != now and all(after <= before for after, before in zip(then, now, strict=True)):
                    found.append((one.id, to.id))
    return found


@given(states())
def test_what_makes_nothing_worse_and_something_better_is_legal(state: Snapshot) -> None:
    for name, to in improving(state):
        source = state.vm_by_id[name].host
        assert source is not None
        assert legal(state, Step(vms=(name,), sources=(source,), target=to, groups=(), repairs=())), (
            name,
            to,
        )


@EACH
@given(state=states())
def test_where_one_migration_makes_things_better_there_is_a_plan_or_a_cause(
    name: StrategyName, state: Snapshot
) -> None:
    if improving(state):
        plan = make_plan(state, CLUSTER, strategy=strategy(name))
        causes = [{each.kind for each in one.obstacles} - {ObstacleKind.NOT_FOUND} for one in plan.remaining]
        assert plan.steps or all(causes)


# -- Highly available VMs that crashed, are unknown or stand on silent hosts.
UI: Any = environment().get_template("ui.html").module
#: Of a host in these states its VMs run on.
_ANSWER = {"up", "preparing_for_maintenance", "non_operational"}


def test_a_host_that_does_not_answer_is_asked_about_like_any_other() -> None:
    checked = ask_about("ovirt-placement ha-check --hosts h1", "silent-host-and-no-home")
    assert checked.status == 1
    assert "a is unknown on h1, which is non_responsive: finds no host" in checked.text
    foreseen = ask_about("ovirt-placement what-if --down h1 --fail-if unplaced", "silent-host-and-no-home")
    assert foreseen.status == 3
    assert "a finds no host" in foreseen.text
    assert "hosts that may fail at once: 0 now, 0 with it" in foreseen.text


def test_the_alert_stays_while_a_vm_is_down_and_finds_no_host() -> None:
    state = state_file.load(STATES["silent-host-and-no-home"])
    verdict = judge(state, state.clusters[0].id, HaSettings())
    assert verdict.state is ReservationState.UNSAFE
    assert verdict.facts["losses"].startswith("no host takes, as things are, 1 VM (")
    assert (verdict.vms_without_home, verdict.failures_survived) == (1, 0)


def test_what_is_down_and_has_a_host_is_not_called_safe_before_it_runs() -> None:
    state = snapshot(cluster(ha_reservation=True), host("h1"), host("h2"), vm("a", ha=True, crashed=True))
    verdict = judge(state, CLUSTER, HaSettings())
    assert (verdict.state, verdict.facts["reason"]) == (ReservationState.UNKNOWN, "1 VM is down: a")


@st.composite
def outages(draw: st.DrawFn) -> Snapshot:
    """Hosts in any state, with VMs on them, down by intent, crashed or unknown."""
    statuses = draw(st.lists(st.sampled_from(sorted(HOST_STATUSES) + ["up"] * 12), min_size=1, max_size=4))
    hosts = [host(f"h{at}", status=one) for at, one in enumerate(statuses)]
    vms = []
    for at in range(draw(st.integers(0, 4))):
        home = draw(st.sampled_from([*(one.id for one in hosts), None]))
        crashed = home is None and draw(st.booleans())
        status = draw(st.sampled_from(["up", "up", "unknown", "paused"])) if home else "down"
        vms.append(vm(f"v{at}", home, ha=draw(st.booleans()), status=status, crashed=crashed))
    return snapshot(cluster(ha_reservation=draw(st.booleans())), *hosts, *vms)


@given(outages())
def test_green_means_that_every_highly_available_vm_runs_or_rests_by_intent(state: Snapshot) -> None:
    answering = {one.id for one in state.hosts if one.status in _ANSWER}
    runs_or_rests = all(
        (one.host in answering and one.status != "unknown") or (one.host is None and not one.crashed)
        for one in state.vms
        if one.ha
    )
    status = cluster_status(state, CLUSTER)
    health, _ = judge_health(None, (), [status], None, None)
    assert health is not Health.HEALTHY or runs_or_rests
    assert health is Health.HEALTHY or UI.condition(status, lambda text, tone: text) != "Healthy", (
        "the page says no other"
    )
    assert runs_or_rests or status.ha_safe is not True
    assert judge(state, CLUSTER, HaSettings()).state is not ReservationState.SAFE or runs_or_rests


#: What befalls hosts and VMs, by turns, and how many seconds pass afterwards.
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["fail", "recover", "deactivate", "activate", "crash", "nothing"]),
        st.integers(0, 3),
        st.sampled_from([0, 1, 30, 90, 600]),
    ),
    min_size=1,
    max_size=8,
)


def befall(engine: Engine, deed: str, number: int) -> None:
    """Nothing, where the engine refuses it."""
    name = f"h{number % 3}" if deed != "crash" else f"v{number}"
    acts = {
        "fail": engine.hosts.fail,
        "recover": engine.hosts.recover,
        "deactivate": engine.hosts.deactivate,
        "activate": engine.hosts.activate,
        "crash": engine.vms.crash,
        "nothing": lambda _: None,
    }
    with suppress(Rejected):
        acts[deed](name)


def runs_or_could_start(state: Snapshot, one: Vm) -> bool:
    """It runs on a host that answers, is down by intent, or some host that is up has room for it."""
    hosts = {each.id: each for each in state.hosts}
    if one.host is not None:
        return hosts[one.host].status in _ANSWER and one.status != "unknown"
    room = any(each.status == "up" and each.free_mb >= needed_mb(one) for each in hosts.values())
    return room or not one.crashed


@given(rooms=st.lists(st.sampled_from([2048, 8192]), min_size=3, max_size=3), deeds=DEEDS)
def test_health_is_green_only_if_every_highly_available_vm_runs_or_could_start(
    rooms: list[int], deeds: list[tuple[str, int, int]]
) -> None:
    hosts = [host(f"h{at}", memory_mb=16384, free_mb=room) for at, room in enumerate(rooms)]
    vms = [vm(f"v{at}", f"h{at % 3}", ha=True, needs_mb=2048) for at in range(4)]
    engine = Engine.from_snapshot(
        snapshot(cluster(ha_reservation=True), *hosts, *vms), clock=datetime(2026, 1, 1, tzinfo=UTC)
    )
    for deed, number, seconds in deeds:
        befall(engine, deed, number)
        engine.advance(seconds)
        state = engine.snapshot()
        status = cluster_status(state, CLUSTER)
        green = judge_health(None, (), [status], None, None)[0] is Health.HEALTHY
        fine = all(runs_or_could_start(state, one) for one in state.vms if one.ha)
        assert fine or not green
        assert fine or safe_word(status.ha_safe) != "safe"
