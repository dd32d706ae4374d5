"""Restarts in the engine's order against brute force: every sequence of starts is held against the order."""

from collections.abc import Iterator
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import PlacementRule, RuleDomain, Snapshot
from ovirt_placement.rules.elements.assignment import Budget
from ovirt_placement.rules.failover.check import Starts, check
from ovirt_placement.rules.failover.outcomes import Loss, Survival
from ovirt_placement.rules.failover.restart_check import RestartOrder
from ovirt_placement.rules.placement_rules.in_force import KINDS
from tests.builders import CLUSTER, cluster, host, needed_mb, rule, snapshot, vm
from tests.examples import examples
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import lets, running

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d", "e")


# -- Restarts in an order written down a second time: it shares no code with the rules, and of the product it
# knows the records of a snapshot alone.
#: VMs that start, one after the other, each with its host.
Sequence = tuple[tuple[str, str], ...]


def failed(state: Snapshot, host: str) -> Snapshot:
    return replace(
        state,
        hosts=tuple(replace(one, status="down") if one.id == host else one for one in state.hosts),
        vms=tuple(replace(one, host=None, status="down") if one.host == host else one for one in state.vms),
    )


def members(state: Snapshot, words: tuple[str, ...]) -> set[str]:
    return {vm.id for vm in state.vms for word in words if word == vm.id or word[len("tag:") :] in vm.tags}


def asked(state: Snapshot) -> set[tuple[str, str]]:
    """All pairs of which the first is to restart after the second, but those that go round."""
    pairs = {
        (later, earlier)
        for rule in state.placement_rules
        if rule.kind == "restart_after" and rule.enabled
        for later in members(state, rule.vms)
        for earlier in members(state, rule.other_vms)
    }
    whole = set(pairs)
    for middle in [each.id for each in state.vms]:
        whole |= {(one, other) for one, to in whole for of, other in whole if to == middle == of}
    return {pair for pair in pairs if pair[::-1] not in whole}


def in_order(state: Snapshot, sequence: tuple[str, ...]) -> bool:
    """Whether no VM starts before one that must restart earlier."""
    pairs, priority = asked(state), {vm.id: vm.ha_priority for vm in state.vms}
    return not any(
        priority[late] > priority[early] or (priority[late] == priority[early] and (early, late) in pairs)
        for number, early in enumerate(sequence)
        for late in sequence[number + 1 :]
    )


def sequences(state: Snapshot, host: str) -> Iterator[Sequence]:
    """Every way to start all highly available VMs of a failed host, each start let through."""
    after = failed(state, host)
    lost = [vm.id for vm in state.vms if vm.host == host and vm.ha]
    for order in permutations(lost):
        yield from _started(after, running(after), order, ())


def _started(
    state: Snapshot, at: dict[str, str], order: tuple[str, ...], done: Sequence
) -> Iterator[Sequence]:
    if not order:
        yield done
        return
    first, *others = order
    for name in takers(state, at, first):
        yield from _started(state, {**at, first: name}, tuple(others), (*done, (first, name)))


def takers(state: Snapshot, at: dict[str, str], vm: str) -> list[str]:
    """The hosts that let a VM start, with VMs where they are."""
    rules = [rule for rule in state.placement_rules if rule.kind != "restart_after"]
    return [
        host.id
        for host in state.hosts
        if host.status == "up"
        and _fits(state, at, vm, host.id)
        and all(lets(rule, state, at, vm, host.id) for rule in rules)
    ]


def _fits(state: Snapshot, at: dict[str, str], vm: str, host: str) -> bool:
    """Memory of those that have started since is taken; `free_mb` has that of the others off already."""
    known = state.vm_by_id[vm]
    begun = [state.vm_by_id[one] for one, there in at.items() if there == host]
    taken = sum(needed_mb(one) for one in begun if one.host is None)
    bound = known.migratable or not known.pinned_hosts or host in known.pinned_hosts
    return bound and taken + needed_mb(known) <= state.host_by_id[host].free_mb


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
    every = list(sequences(state, "h1"))
    good = [one for one in every if in_order(state, tuple(vm for vm, _ in one))]
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
    after = failed(state, "h1")
    lost = {one.id for one in state.vms if one.host == "h1" and one.ha}
    assert loss.unplaced
    assert {*loss.homes, *loss.unplaced} == lost
    assert in_order(state, tuple(loss.homes))
    at = running(after)
    for one, home in loss.homes.items():
        assert home in takers(after, at, one)
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
    legal = [one for one in permutations(given) if in_order(state, one)]
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
    assert (loss.hosts, loss.homes, loss.unplaced) == (("h0",), {"a": "h1", "c": "h2"}, ("b",))
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
