"""Restarts in the engine's order against brute force, and verdicts carried out in a simulated engine.

Every sequence of starts is held against the order. Hosts of the simulated engine fail, and VMs are started as
the witness says: it has filters of its own and knows nothing of the rules.
"""

import random
from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import PlacementRule, RuleDomain, Snapshot
from ovirt_placement.rules.elements.assignment import Budget
from ovirt_placement.rules.failover.check import Starts, check
from ovirt_placement.rules.failover.outcomes import Domain, Loss, Survival
from ovirt_placement.rules.failover.restart_check import RestartOrder
from ovirt_placement.rules.placement_rules.in_force import KINDS
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.generate import Sizes, generate
from tests.builders import CLUSTER, cluster, host, rule, snapshot, vm
from tests.examples import examples
from tests.placement.rules.failover import ordered
from tests.placement.rules.placement_rules.drawn import placement_rules

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d", "e")


@st.composite
def orders(draw: st.DrawFn) -> list[PlacementRule]:
    some = st.lists(st.sampled_from([*VMS, "tag:t"]), min_size=1, max_size=2, unique=True).map(" ".join)
    return [
        rule(f"o{number}", "restart_after", draw(some), other_vms=draw(some))
        for number in range(draw(st.integers(0, 3)))
    ]


@st.composite
def states(draw: st.DrawFn, kind: str) -> Snapshot:
    """One host, the first, has up to four VMs that are to restart; some may do so on few hosts only."""
    hosts = [host(name, free_mb=draw(st.sampled_from([0, 1024, 2048, 8192, 8192]))) for name in HOSTS]
    lost = draw(st.integers(2, 4))
    vms = []
    for number, name in enumerate(VMS):
        bound = draw(st.sampled_from([(), (), ("h1", "h2"), ("h1", "h3", "h4")]))
        where = "h1" if number < lost else draw(st.sampled_from([None, *HOSTS[1:]]))
        vms.append(
            vm(
                name,
                where,
                ha=number < lost,
                ha_priority=draw(st.sampled_from([1, 1, 50])),
                tags=draw(st.sampled_from([(), ("t",)])),
                migratable=not bound,
                pinned_hosts=bound,
            )
        )
    rules = [draw(placement_rules("r0", VMS, HOSTS, (kind,), enforcing=True))]
    if draw(st.booleans()):
        rules.append(draw(placement_rules("r1", VMS, HOSTS, enforcing=True)))
    return snapshot(cluster(ha_reservation=True), *hosts, *vms, *rules, *draw(orders()))


@st.composite
def racks(draw: st.DrawFn) -> Snapshot:
    """VMs that are spread evenly over racks at every moment, and bound to some: who is first matters."""
    hosts = [host("h1", status="up"), *(host(name, tags=(f"rack-{name}",)) for name in HOSTS[1:])]
    vms = []
    for name in VMS[: draw(st.integers(3, 4))]:
        bound = draw(st.sampled_from([("h2",), ("h3",), ("h2", "h3"), ("h4",)]))
        pinned = {"migratable": False, "pinned_hosts": ("h1", *bound)}
        vms.append(vm(name, "h1", ha=True, ha_priority=draw(st.sampled_from([1, 50, 100])), **pinned))
    domains = tuple(RuleDomain(name=f"rack-{name}", hosts=(name,)) for name in HOSTS[1:])
    even = rule("s", "spread", " ".join(one.id for one in vms), max_skew=1, domains=domains)
    known = {one.id for one in vms}
    some = [one for one in draw(orders()) if {*one.vms, *one.other_vms} <= known]
    return snapshot(cluster(ha_reservation=True), *hosts, *vms, even, *some)


@pytest.mark.parametrize("kind", [None, *KINDS])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_a_failure_is_survived_if_starts_in_order_are_let_through(
    kind: str | None, data: st.DataObject
) -> None:
    state = data.draw(racks() if kind is None else states(kind))
    outcome = Starts(state, CLUSTER).judge(("h1",), Budget(5_000_000))
    every = list(ordered.sequences(state, "h1"))
    good = [one for one in every if ordered.in_order(state, tuple(vm for vm, _ in one))]
    assert isinstance(outcome, Survival) is bool(good)
    if isinstance(outcome, Survival):
        assert tuple(outcome.homes.items()) in good
        return
    assert isinstance(outcome, Loss)
    assert bool(outcome.otherwise) is bool(every)
    if outcome.otherwise:
        assert tuple(outcome.otherwise.items()) in every
        _check_replay(state, outcome)


def _check_replay(state: Snapshot, loss: Loss) -> None:
    """What is left out found no host in its turn, and all others did in theirs."""
    after = ordered.failed(state, "h1")
    lost = {one.id for one in state.vms if one.host == "h1" and one.ha}
    assert loss.unplaced
    assert {*loss.homes, *loss.unplaced} == lost
    assert ordered.in_order(state, tuple(loss.homes))
    at = ordered.running(after)
    for one, home in loss.homes.items():
        assert home in ordered.takers(after, at, one)
        at[one] = home


@settings(max_examples=examples(60), deadline=None)
@given(orders(), st.lists(st.sampled_from([1, 50, 100]), min_size=5, max_size=5), st.permutations(VMS))
def test_the_order_is_that_of_priorities_and_rules(
    rules: list[PlacementRule], priorities: list[int], given: list[str]
) -> None:
    tagged = {"b", "e"}
    vms = [
        vm(name, "h1", ha=True, ha_priority=number, tags=("t",) if name in tagged else ())
        for name, number in zip(VMS, priorities, strict=True)
    ]
    state = snapshot(host("h1"), *vms, *rules)
    order = RestartOrder(state)
    legal = [one for one in permutations(given) if ordered.in_order(state, one)]
    assert order.ordered(given) in legal
    assert (len(order.ready(given)) == len(given)) is (len(legal) == 120)
    assert set(order.ready(given)) == {one[0] for one in legal}
    for name in given:
        places = [one.index(name) + 1 for one in legal]
        rank = order.rank(name, given)
        assert (rank.earliest, rank.latest) == (min(places), max(places))
    if tuple(given) in legal:
        assert order.ordered(given) == tuple(given)


def test_what_a_priority_makes_impossible_is_a_loss_with_the_order_that_would_do() -> None:
    """Two VMs of one rack must not stand alone: between them one of the other rack has to start."""
    racks = {"domain_tags": ("rack-",), "max_skew": 1}
    hosts = [host("h0"), host("h1", tags=("rack-1",)), host("h2", tags=("rack-2",))]
    first = {"ha": True, "ha_priority": 100, "migratable": False, "pinned_hosts": ("h0", "h1")}
    last = {**first, "ha_priority": 1, "pinned_hosts": ("h0", "h2")}
    vms = [vm("a", "h0", **first), vm("b", "h0", **first), vm("c", "h0", **last)]
    state = snapshot(cluster(ha_reservation=True), *hosts, *vms, rule("s", "spread", "a b c", **racks))
    (loss,) = check(state, CLUSTER).losses
    assert loss.hosts == ("h0",)
    assert loss.homes == {"a": "h1", "c": "h2"}
    assert loss.unplaced == ("b",)
    assert list(loss.otherwise.items()) in (
        [("a", "h1"), ("c", "h2"), ("b", "h1")],
        [("b", "h1"), ("c", "h2"), ("a", "h1")],
        [("c", "h2"), ("a", "h1"), ("b", "h1")],
        [("c", "h2"), ("b", "h1"), ("a", "h1")],
    )
    alike = replace(state, vms=tuple(replace(one, ha_priority=1) for one in state.vms))
    assert check(alike, CLUSTER).safe
    after = rule("o", "restart_after", "c", other_vms="a b")
    assert not check(replace(alike, placement_rules=(*state.placement_rules, after)), CLUSTER).safe


#: Longer than a crash needs to be seen and fenced, and VMs to start.
A_MINUTE = 60.0
#: The event of a VM that the engine restarts.
RESTARTED = 506


def drawn(seed: int) -> Snapshot:
    """A cluster of a few hosts that are so full that failures are now survived, now not."""
    dice = random.Random(seed)
    sizes = Sizes(hosts=dice.randint(3, 8), vms=dice.randint(20, 80), groups=dice.randint(0, 12), ha=0.4)
    state = generate(sizes, seed)
    left = dice.choice([0.25, 0.4, 0.6, 1.0])
    return replace(
        state, hosts=tuple(replace(host, free_mb=int(host.free_mb * left)) for host in state.hosts)
    )


def engine_of(state: Snapshot, *, ha: bool) -> Engine:
    """An engine that restarts HA VMs by itself, or waits for orders."""
    vms = tuple(vm if ha else replace(vm, ha=False) for vm in state.vms)
    return Engine.from_snapshot(
        replace(state, vms=vms), clock=datetime(2026, 1, 1, tzinfo=UTC), settings=PROMPT
    )


def crash(engine: Engine, hosts: tuple[str, ...]) -> None:
    for name in hosts:
        engine.hosts.fail(name)
    engine.advance(A_MINUTE)


@pytest.mark.parametrize("part", range(8))
def test_witness_is_carried_out_and_loss_shows(part: int) -> None:
    survived = lost = 0
    for seed in range(part * 25, (part + 1) * 25):
        state = drawn(seed)
        cluster = state.clusters[0].id
        dice = random.Random(seed)
        failing = frozenset(dice.sample([host.id for host in state.hosts], dice.randint(1, 2)))
        found = check(state, cluster, domains=(Domain(None, failing),))
        assert found.safe is not None
        if found.safe:
            survived += 1
            restart_as_reported(state, *found.survivals)
        else:
            lost += 1
            restart_by_itself_in_vain(state, found.losses[0].hosts)
    assert survived > 3
    assert lost > 3


def restart_as_reported(state: Snapshot, witness: Survival) -> None:
    protected = {vm.id for vm in state.vms if vm.ha and vm.host in witness.hosts}
    assert witness.homes.keys() == protected
    engine = engine_of(state, ha=False)
    crash(engine, witness.hosts)
    for name, home in witness.homes.items():
        engine.vms.start(name, host_id=home)
    engine.advance(A_MINUTE)
    after = engine.snapshot().vm_by_id
    assert {vm: after[vm].host for vm in protected} == witness.homes
    assert {after[vm].status for vm in protected} <= {"up"}


def restart_by_itself_in_vain(state: Snapshot, hosts: tuple[str, ...]) -> None:
    engine = engine_of(state, ha=True)
    crash(engine, hosts)
    engine.advance(10 * A_MINUTE)
    after = engine.snapshot().vm_by_id
    assert any(after[vm.id].status == "down" for vm in state.vms if vm.ha and vm.host in hosts)


def test_an_engine_restarts_in_the_order_that_the_proof_has() -> None:
    several = 0
    for seed in range(8):
        dice = random.Random(seed)
        state = drawn(seed)
        vms = tuple(replace(vm, ha_priority=dice.choice([1, 50, 100])) for vm in state.vms)
        state = replace(state, vms=vms)
        busiest = max(state.hosts, key=lambda host: sum(vm.ha and vm.host == host.id for vm in vms))
        engine = engine_of(state, ha=True)
        crash(engine, (busiest.id,))
        engine.advance(A_MINUTE)
        events = [event for event in reversed(engine.queries.events()) if event.code == RESTARTED]
        # Each is reported when it begins and when it is up.
        begun = list(dict.fromkeys(event.vm.id for event in events if event.vm is not None))
        several += len({state.vm_by_id[vm].ha_priority for vm in begun}) > 1
        assert RestartOrder(state).ordered(begun) == tuple(begun)
    assert several > 3
