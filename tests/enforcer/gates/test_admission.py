"""Nothing reaches the engine but by the one place that asks every gate; what others move is left alone."""

import ast
import dataclasses
import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ovirt_enforcer
from ovirt_enforcer import gates as room
from ovirt_enforcer.actions.executor import Task
from ovirt_enforcer.gates.admission import GATES, Admitted, Gates
from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.limits import LIMITS
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_rules.in_force import KINDS
from ovirt_placement.store.enforcer.intents import IntentState
from tests.builders import APART, CLUSTER, Part, cluster, group, host, needed_mb, pending, rule, snapshot, vm
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import lets_step, running

from .judging import ENFORCE, NOON, PARTS, STEP, admitted, answer, closed, gates, intent, step

PACKAGE = Path(ovirt_enforcer.__file__).parent


def test_a_step_passes_when_nothing_speaks_against_it() -> None:
    passed = admitted(gates())
    assert (passed.cluster, passed.what) == (CLUSTER, STEP)


def test_the_rules_are_asked_again_of_the_newest_snapshot() -> None:
    full = (host("h1"), host("h2", free_mb=1), *PARTS[2:])
    reason = "the rules or the room on the target no longer allow it"
    assert closed(gates(), *full) == ("legality", reason)


def test_the_first_gate_that_is_closed_says_why() -> None:
    upgraded = (*PARTS, cluster(upgrade_mode=True))
    assert closed(gates(EnforcerSettings()), *upgraded)[0] == "mode"


def test_each_sees_the_room_that_those_before_it_take() -> None:
    parts = (host("h1"), host("h2", free_mb=1500), vm("a", "h1"), vm("b", "h1"))
    for first, second in (("a", "b"), ("b", "a")):
        asked = gates()
        assert admitted(asked, *parts, of=step(first, groups=""))
        assert closed(asked, *parts, of=step(second, groups=""))[0] == "legality"
        assert admitted(gates(), *parts, of=step(second, groups=""))


def test_nothing_is_admitted_twice() -> None:
    asked = gates()
    assert admitted(asked)
    assert closed(asked) == ("movement", "a is on its way already, by us")


def test_admissions_from_many_threads_count_each_other() -> None:
    state = snapshot(host("h1"), host("h2"), *(vm(f"v{number}", "h1") for number in range(40)))
    asked = gates(EnforcerSettings(mode=Mode.ENFORCE, host_migrations_out=7, host_migrations_in=9))

    def try_one(number: int) -> str:
        found = answer(asked, of=step(f"v{number}", groups=""), state=state)
        return "open" if found is None else found[0]

    with ThreadPoolExecutor(8) as pool:
        assert Counter(pool.map(try_one, range(40))) == {"open": 7, "host_at_once": 33}


def test_a_migration_whose_end_is_not_known_holds_its_vm() -> None:
    waiting = intent(IntentState.UNKNOWN, 9999)
    assert closed(gates(under_way=[waiting])) == ("movement", "a is on its way already, by us")


def test_the_time_of_day_needs_its_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Facts(ENFORCE, datetime(2026, 3, 2, 12))
    assert Gates(Facts(ENFORCE, NOON))


def test_every_gate_stands_in_the_catalogue_once() -> None:
    modules = pkgutil.iter_modules(room.__path__, f"{room.__name__}.")
    found = [
        one
        for module in modules
        for one in vars(importlib.import_module(module.name)).values()
        if isinstance(one, Gate)
    ]
    assert {id(gate) for gate in found} | {id(gate) for gate in LIMITS} == {id(gate) for gate in GATES}
    assert len({id(gate) for gate in GATES}) == len(GATES)


def test_nothing_but_the_gates_can_make_an_admitted_step() -> None:
    passed = admitted(gates())
    with pytest.raises(TypeError, match="nothing else"):
        Admitted(passed.cluster, passed.what, object())
    with pytest.raises((TypeError, ValueError), match="key"):
        dataclasses.replace(passed, cluster="another")
    with pytest.raises(dataclasses.FrozenInstanceError):
        passed.cluster = "another"  # type: ignore[misc]


def test_the_key_does_not_leave_the_file_of_the_gates() -> None:
    assert [one.name for one in PACKAGE.rglob("*.py") if "_KEY" in one.read_text("utf-8")] == ["admission.py"]


def test_only_what_takes_an_admitted_step_asks_the_engine_for_a_migration() -> None:
    callers = list(_users_of("migrate"))
    assert [(file, function.name) for file, function in callers] == [("executor.py", "_request")]
    annotation = callers[0][1].args.args[1].annotation
    assert isinstance(annotation, ast.Name)
    assert annotation.id == Task.__name__
    assert get_type_hints(Task)["admitted"] is Admitted


def _users_of(name: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of the enforcer that name a function of another module, with their files."""
    for file in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(function)
            ):
                yield file.name, function


FAR = (host("f1"), host("f2"))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ((vm("x", "h2", status="migrating"),), "x is on its way from or to h2"),
        ((vm("x", "h1", status="migrating"),), "x is on its way from or to h1"),
        ((vm("x", "f1", migrating_to="h2"),), "x is on its way from or to h2"),
        ((vm("x", "f1"), pending("x", "h2")), "x is on its way from or to h2"),
        ((vm("x", "f1"), pending("x", "h1")), "x is on its way from or to h1"),
        (
            (vm("x", "f1", status="migrating"), group("k", APART, "a x")),
            "x of affinity group k is on its way",
        ),
        ((vm("x"), pending("x", "f1"), group("k", APART, "a x")), "x of affinity group k is on its way"),
    ],
)
def test_what_touches_others_migrations_waits(more: tuple[Part, ...], what: str) -> None:
    assert closed(gates(), *PARTS, *FAR, *more) == ("movement", f"{what}, by the engine or a user")


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
    other = cluster(), cluster("other"), host("far", cluster="other")
    assert admitted(gates(), *PARTS, *other, vm("busy", "far", cluster="other", status="migrating"))


VMS, HOSTS = ("a", "b", "c", "d"), ("h1", "h2", "h3")
CLOSED = ("legality", "the rules or the room on the target no longer allow it")


def judged(state: Snapshot, moved: str, target: str) -> tuple[str, str] | None:
    """The gate that is closed for a migration, and why; None if it is admitted."""
    groups = " ".join(one.id for one in state.placement_rules)
    return answer(gates(), of=step(moved, state.vm_by_id[moved].host or "", target, groups), state=state)


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


def test_a_rule_for_the_end_holds_no_migration() -> None:
    later = rule("r", "at_most_per_host", "a b", most=1, continuous=False)
    state = snapshot(*map(host, HOSTS), vm("a", "h1"), vm("b", "h2"), later)
    assert judged(state, "a", "h2") is None
