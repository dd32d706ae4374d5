"""Each kind of placement rule against its definition: violations, the filter, the weight, many at once."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import PlacementRule, RuleDomain, Snapshot
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_rules.in_force import KINDS, constraints_in
from ovirt_placement.rules.placement_rules.units import filter_hosts, rank_hosts
from tests.builders import CLUSTER, TOGETHER, group, host, rule, snapshot, vm
from tests.examples import examples
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import (
    At,
    draws_all_at_once,
    lets,
    lets_step,
    running,
    satisfied,
)

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d", "e")
#: Placements that are tried by brute force: what is farther from being satisfied takes seconds.
_MOST_TRIED = 1_000


def fewest_moves(rule: PlacementRule, state: Snapshot, at: At) -> int | None:
    """How many VMs must be elsewhere for a rule to be satisfied, wherever; None if that cannot be."""
    seen = {tuple(sorted(at.items()))}
    layer, moves = [dict(at)], 0
    while layer:
        if any(satisfied(rule, state, one) for one in layer):
            return moves
        assume(len(layer) < _MOST_TRIED)
        further = []
        for one in layer:
            for name in one:
                for to in state.hosts:
                    after = {**one, name: to.id}
                    if tuple(sorted(after.items())) not in seen:
                        seen.add(tuple(sorted(after.items())))
                        further.append(after)
        layer, moves = further, moves + 1
    return None


def each_kind(test: Callable[[str, st.DataObject], None]) -> Callable[..., None]:
    drawing = settings(max_examples=examples(30))(given(data=st.data())(test))
    return pytest.mark.parametrize("kind", KINDS)(drawing)


@st.composite
def states(draw: st.DrawFn, kind: str, **options: Any) -> Snapshot:
    """One rule of a kind, or another besides it; a host may be in maintenance, and a VM bound to hosts."""
    status = st.sampled_from(["up", "up", "up", "maintenance"])
    hosts = [host(name, status="up" if name == "h1" else draw(status)) for name in HOSTS]
    vms = [
        vm(name, draw(st.sampled_from([None, *HOSTS])), vcpus=draw(st.integers(1, 2)))
        for name in VMS
    ]  # fmt: skip
    bound = group("g", vms=draw(st.sampled_from(VMS)), hosts_rule=TOGETHER, hosts="h1 h2")
    rules = [draw(placement_rules("r0", VMS, HOSTS, (kind,), **options))]
    if draw(st.booleans()):
        rules.append(draw(placement_rules("r1", VMS, HOSTS, **options)))
    draining = draw(st.sampled_from([(), (), ("h2",)]))
    return replace(snapshot(*hosts, *vms, bound, *rules), draining_hosts=draining)


@each_kind
def test_a_rule_is_violated_when_its_definition_says_so(kind: str, data: st.DataObject) -> None:
    state = data.draw(states(kind))
    found = {one.groups[0]: one for one in find_violations(state, CLUSTER) if one.groups != ("g",)}
    violated = {rule.id for rule in state.placement_rules if not satisfied(rule, state, running(state))}
    assert set(found) == violated
    for one in found.values():
        assert set(one.offenders) <= set(running(state))


@each_kind
def test_no_fewer_vms_than_the_surplus_repair_a_rule(kind: str, data: st.DataObject) -> None:
    state = data.draw(states(kind))
    placement, at = SnapshotPlacement(state), running(state)
    for one in constraints_in(state, CLUSTER):
        (rule,) = (rule for rule in state.placement_rules if rule.id == one.groups[0])
        least = fewest_moves(rule, state, at)
        if least is not None:
            assert one.surplus(placement) == least


@each_kind
def test_the_filter_judges_by_the_vm_that_comes(kind: str, data: st.DataObject) -> None:
    """A host on which nothing is wrong comes before those on which nothing is worse.

    Where all rules are satisfied, it lets pass what leaves them so.
    """
    state, one = data.draw(states(kind, enforcing=True)), data.draw(st.sampled_from(VMS))
    at = running(state)
    others = tuple(name for name in HOSTS if name != at.get(one))
    right = [
        name for name in others if all(lets(rule, state, at, one, name) for rule in state.placement_rules)
    ]
    all_right = all(satisfied(rule, state, at) for rule in state.placement_rules)
    of_all = {each.host: each.accepted for each in filter_hosts(state, Request((one,), HOSTS))}
    for verdict in filter_hosts(state, Request((one,), others)):
        assert verdict.accepted is not any(reason.kind.veto for reason in verdict.reasons)
        if state.host_by_id[verdict.host].up:
            no_worse = all(lets_step(rule, state, at, one, verdict.host) for rule in state.placement_rules)
            assert verdict.accepted is (verdict.host in right or (not right and no_worse))
            after = {**at, one: verdict.host}
            stay_so = all(satisfied(rule, state, after) for rule in state.placement_rules)
            assert not all_right or verdict.accepted is of_all[verdict.host] is stay_so


@each_kind
def test_vms_that_come_together_are_judged_as_if_one_came_after_the_other(
    kind: str, data: st.DataObject
) -> None:
    """But for a rule that draws them together, which is asked of all at once."""
    state = data.draw(states(kind, enforcing=True))
    first, second = data.draw(st.permutations(VMS))[:2]
    check_together(state, first, second)


def test_who_is_drawn_together_may_leave_a_domain_together() -> None:
    domains = (RuleDomain(name="r1", hosts=("h1",)), RuleDomain(name="r2", hosts=("h2",)))
    one = rule("r0", "same_domain", "a b", domains=domains)
    check_together(snapshot(host("h1"), host("h2"), vm("a"), vm("b", "h2"), one), "a", "b")


@pytest.mark.parametrize("kind", ["exclusive_hosts", "capacity"])
def test_hosts_that_are_alike_are_judged_by_one_look_at_all_members(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a rule that thousands violate a look takes long, and hundreds of hosts are asked about."""
    names = [f"h{number}" for number in range(1, 30)]
    wrong = [vm(f"v{number}", "h1") for number in range(3)]
    fields = {"most": 1} if kind == "capacity" else {}
    ours = rule("r", kind, "v0 v1 new" if kind == "capacity" else "other", hosts=" ".join(names), **fields)
    state = snapshot(*map(host, ("h0", *names)), *wrong, vm("new", "h0"), vm("other"), ours)
    (constraint,) = constraints_in(state, CLUSTER)
    looks: list[object] = []
    whole = type(constraint).excess
    monkeypatch.setattr(
        type(constraint), "excess", lambda self, placement: looks.append(0) or whole(self, placement)
    )
    assert not any(one.accepted for one in filter_hosts(state, Request(("new",), tuple(names))))
    assert len(looks) == 2


@pytest.mark.parametrize(("least", "accepting"), [(2, ["h3"]), (1, ["h1", "h2", "h3", "h4"])])
def test_a_vm_that_migrates_is_in_one_of_two_domains_and_either_is_taken(
    least: int, accepting: list[str]
) -> None:
    domains = tuple(RuleDomain(name=f"r{at}", hosts=(f"h{at}",)) for at in (1, 2, 3))
    one = rule("r0", "minimum_domains", "a b", least=least, domains=domains)
    migrating = vm("a", "h1", status="migrating", migrating_to="h2")
    found = filter_hosts(snapshot(*map(host, HOSTS), migrating, vm("b"), one), Request(("b",), HOSTS))
    assert [verdict.host for verdict in found if verdict.accepted] == accepting


def check_together(state: Snapshot, first: str, second: str) -> None:
    def accepts(state: Snapshot, *vms: str) -> bool:
        (found,) = filter_hosts(state, Request(vms, ("h1",)))
        return found.accepted

    def right(rule: PlacementRule) -> bool:
        alone = replace(state, placement_rules=(rule,))
        came = tuple(
            replace(each, host="h1", status="up") if each.id == first else each for each in state.vms
        )
        in_turn = accepts(alone, first) and accepts(replace(alone, vms=came), second)
        drawn = rule.kind == "same_domain" and draws_all_at_once(rule, running(state), (first, second), "h1")
        return in_turn or drawn

    assert accepts(state, first, second) is all(map(right, state.placement_rules))


@each_kind
def test_hosts_that_break_what_matters_more_are_ranked_behind(kind: str, data: st.DataObject) -> None:
    state, one = data.draw(states(kind)), data.draw(st.sampled_from(VMS))
    at = running(state)
    if one in at or not all(satisfied(rule, state, at) for rule in state.placement_rules):
        return
    up = tuple(name for name in HOSTS if state.host_by_id[name].up)

    def burden(name: str) -> tuple[tuple[bool, float], ...]:
        after = {**at, one: name}
        violated = [rule for rule in state.placement_rules if not satisfied(rule, state, after)]
        return tuple(sorted(((rule.enforcing, rule.priority) for rule in violated), reverse=True))

    ranks = {each.host: each.rank for each in rank_hosts(state, Request((one,), up))}
    for this in up:
        for that in up:
            if burden(this) < burden(that):
                assert ranks[this] < ranks[that]
    assert (set(ranks), set(ranks.values())) == (set(up), set(range(max(ranks.values()) + 1)))


@each_kind
def test_nobody_is_refused_because_of_vms_of_whom_nobody_knows_where_they_are(
    kind: str, data: st.DataObject
) -> None:
    """A host is open that would be with these VMs on some hosts or other; the engine knows on which."""
    state = data.draw(states(kind, enforcing=True))
    one, *others = data.draw(st.permutations(VMS))
    unknown = data.draw(st.sets(st.sampled_from(others), max_size=2))
    at = {vm: host for vm, host in running(state).items() if vm not in unknown}
    up = [name for name in HOSTS if state.host_by_id[name].up and name != at.get(one)]
    request = Request((one,), tuple(up), unconfirmed=frozenset(unknown))
    accepted = {each.host for each in filter_hosts(state, request) if each.accepted}
    for places in product(HOSTS, repeat=len(unknown)):
        somewhere = {**at, **dict(zip(sorted(unknown), places, strict=True))}
        before = all(satisfied(rule, state, somewhere) for rule in state.placement_rules)
        for name in up if before else ():
            if all(satisfied(rule, state, {**somewhere, one: name}) for rule in state.placement_rules):
                assert name in accepted, (unknown, places)


def test_no_vm_leaves_a_domain_that_would_have_too_few_for_one_that_is_drained() -> None:
    domains = tuple(RuleDomain(name=f"r{at}", hosts=(f"h{at}",)) for at in (1, 2, 3))
    state = snapshot(
        host("h1"), host("h2"), host("h3"),
        *(vm(name, "h1") for name in "abd"), vm("c", "h3"),
        rule("even", "spread", "a b c d", max_skew=2, domains=domains),
    )  # fmt: skip
    drained = replace(state, draining_hosts=("h2",))
    (verdict,) = filter_hosts(drained, Request(("c",), ("h2",)))
    assert [one.kind.name for one in verdict.reasons] == ["domains_too_uneven"]
    (verdict,) = filter_hosts(drained, Request(("a",), ("h2",)))
    assert verdict.accepted
