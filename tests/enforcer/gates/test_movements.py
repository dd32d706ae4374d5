"""What others move is left alone, with the host and the groups that are concerned; the rest goes on."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_enforcer.gates.admission import Closed
from ovirt_placement.model import PlacementRule, RuleDomain, Snapshot
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.rules.placement_rules.in_force import KINDS
from ovirt_placement.store.enforcer.intents import IntentState
from tests.builders import APART, CLUSTER, Part, cluster, group, host, needed_mb, pending, rule, snapshot, vm
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import lets_step, running

from .judging import PARTS, STEP, admitted, closed, gates, intent, step

FAR = (host("f1"), host("f2"))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((vm("x", "h2", status="migrating"),), "x is on its way from or to h2, by the engine or a user"),
        ((vm("x", "h1", status="migrating"),), "x is on its way from or to h1, by the engine or a user"),
        ((vm("x", "f1", migrating_to="h2"),), "x is on its way from or to h2, by the engine or a user"),
        ((vm("x", "f1"), pending("x", "h2")), "x is on its way from or to h2, by the engine or a user"),
        ((vm("x", "f1"), pending("x", "h1")), "x is on its way from or to h1, by the engine or a user"),
        (
            (vm("x", "f1", status="migrating"), group("k", APART, "a x")),
            "x of affinity group k is on its way, by the engine or a user",
        ),
        (
            (vm("x"), pending("x", "f1"), group("k", APART, "a x")),
            "x of affinity group k is on its way, by the engine or a user",
        ),
    ],
)
def test_what_touches_others_migrations_waits(more: tuple[Part, ...], reason: str) -> None:
    assert closed(gates(), *PARTS, *FAR, *more) == ("movement", reason)


@pytest.mark.parametrize(
    "more",
    [
        (vm("x", "f1", status="migrating"),),
        (vm("x", "f1", migrating_to="f2"),),
        (vm("x"), pending("x", "h2")),
        (vm("x", "f1", status="migrating"), group("k", vms="a x")),
    ],
    ids=["elsewhere", "elsewhere, target known", "a start", "a group without a rule for VMs"],
)
def test_what_others_do_elsewhere_holds_nothing(more: tuple[Part, ...]) -> None:
    assert admitted(gates(), *PARTS, *FAR, *more)


def test_a_vm_that_somebody_moves_is_left_alone() -> None:
    parts = (*PARTS[:2], vm("a", "h1", status="migrating"), *PARTS[3:])
    assert closed(gates(), *parts) == ("movement", "a is on its way already, by the engine or a user")


def test_our_own_migrations_do_not_hold_their_hosts_and_groups() -> None:
    ours = intent(IntentState.ACCEPTED, 5, "c", None)
    parts = (*PARTS, *FAR, vm("c", "h1", status="migrating"), group("k", APART, "a c"))
    # The group would refuse the target if both went there.
    elsewhere = intent(IntentState.ACCEPTED, 5, "c", None, target="f1")
    assert closed(gates(under_way=[ours]), *parts)[0] == "legality"
    assert admitted(gates(under_way=[elsewhere]), *parts)


def test_what_moves_in_another_cluster_is_no_obstacle() -> None:
    parts = (*PARTS, cluster(), cluster("other"), host("far", cluster="other"))
    state = snapshot(*parts, vm("busy", "far", cluster="other", status="migrating"))
    assert gates().admit(state, CLUSTER, STEP)


VMS, HOSTS = ("a", "b", "c", "d"), ("h1", "h2", "h3")
RACKS = (RuleDomain(name="r1", hosts=("h1", "h2")), RuleDomain(name="r2", hosts=("h3",)))
#: Two on h1, one in the other rack, and one alone on h2.
STANDING = (*map(host, HOSTS), vm("a", "h1"), vm("b", "h1"), vm("c", "h3"), vm("d", "h2"))
CLOSED = ("legality", "the rules or the room on the target no longer allow it")


def judged(state: Snapshot, moved: str, target: str) -> tuple[str, str] | None:
    """The gate that is closed for a migration, and why; None if it is admitted."""
    known = state.vm_by_id[moved]
    groups = " ".join(one.id for one in state.placement_rules)
    try:
        assert gates().admit(state, CLUSTER, step(moved, known.host or "", target, groups), None)
    except Closed as found:
        return found.gate, str(found)
    return None


@st.composite
def states(draw: st.DrawFn, kind: str) -> Snapshot:
    """Unequal hosts; some rules are soft."""
    hosts = [host(name, free_mb=draw(st.sampled_from([512, 4096, 16384]))) for name in HOSTS]
    vms = [vm(name, draw(st.sampled_from(HOSTS))) for name in VMS]
    asked = enumerate(((kind,), tuple(KINDS)))
    rules = [draw(placement_rules(f"r{number}", VMS, HOSTS, kinds)) for number, kinds in asked]
    return snapshot(*hosts, *vms, *rules)


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_migration_the_gates_say_what_rules_and_room_say(kind: str) -> None:
    answers: set[bool] = set()

    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(states(kind))
    def judge(state: Snapshot) -> None:
        at = running(state)
        for one in state.vms:
            for target in HOSTS:
                if target == one.host:
                    continue
                fits = state.host_by_id[target].free_mb >= needed_mb(one)
                hard = (each for each in state.placement_rules if each.enforcing)
                allowed = fits and all(lets_step(each, state, at, one.id, target) for each in hard)
                found = judged(state, one.id, target)
                assert found == (None if allowed else CLOSED), (one.id, target)
                answers.add(allowed)

    judge()
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("ruled", "moved", "target"),
    [
        (rule("r", "at_most_per_host", "a b c", most=1), "a", "h2"),
        (rule("r", "at_most_per_domain", "a b", most=1, domains=RACKS), "a", "h3"),
        (rule("r", "separate", "a", other_vms="b c"), "a", "h2"),
        (rule("r", "exclusive_hosts", "c", hosts="h1"), "a", "h2"),
        (rule("r", "capacity", "a b c", hosts="h1", most=1), "a", "h2"),
        (rule("r", "same_domain", "a b c", domains=RACKS), "c", "h2"),
        (rule("r", "minimum_domains", "a b", least=2, domains=RACKS), "a", "h3"),
        (rule("r", "spread", "a b", max_skew=1, domains=RACKS), "a", "h3"),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_what_repairs_a_violated_rule_is_admitted(ruled: PlacementRule, moved: str, target: str) -> None:
    state = snapshot(*STANDING, ruled)
    assert [one.constraint.groups for one in find_violations(state, CLUSTER)] == [("rule:r",)]
    assert judged(state, moved, target) is None


@pytest.mark.parametrize(
    ("ruled", "moved", "target"),
    [
        (rule("r", "at_most_per_host", "a c", most=1), "a", "h3"),
        (rule("r", "at_most_per_domain", "a c", most=1, domains=RACKS), "c", "h2"),
        (rule("r", "separate", "a b", other_vms="c"), "a", "h3"),
        (rule("r", "exclusive_hosts", "a b", hosts="h1"), "d", "h1"),
        (rule("r", "capacity", hosts="h1", most=2), "d", "h1"),
        (rule("r", "same_domain", "a b d", domains=RACKS), "d", "h3"),
        (rule("r", "minimum_domains", "a c", least=2, domains=RACKS), "c", "h2"),
        (rule("r", "spread", "a c", max_skew=1, domains=RACKS), "c", "h2"),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_what_would_violate_a_satisfied_rule_is_not(ruled: PlacementRule, moved: str, target: str) -> None:
    state = snapshot(*STANDING, ruled)
    assert list(find_violations(state, CLUSTER)) == []
    assert judged(state, moved, target) == CLOSED


def test_a_rule_for_the_end_holds_no_migration() -> None:
    later = rule("r", "at_most_per_host", "a b", most=1, continuous=False)
    state = snapshot(*map(host, HOSTS), vm("a", "h1"), vm("b", "h2"), later)
    assert judged(state, "a", "h2") is None
