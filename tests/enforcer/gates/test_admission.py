"""Nothing reaches the engine but by way of the one place that asks every gate."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import get_type_hints

import pytest

import ovirt_enforcer
from ovirt_enforcer import gates as room
from ovirt_enforcer.actions.executor import Task
from ovirt_enforcer.gates.admission import GATES, Admitted, Closed, Gates
from ovirt_enforcer.gates.gate import Gate, Remembered
from ovirt_enforcer.gates.limits import LIMITS
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.enforcer.intents import IntentState
from tests.builders import CLUSTER, cluster, host, snapshot, vm

from .judging import ENFORCE, NOON, PARTS, STEP, admitted, closed, gates, intent, step

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
        try:
            asked.admit(state, CLUSTER, step(f"v{number}", groups=""))
        except Closed as refusal:
            return refusal.gate
        return "open"

    with ThreadPoolExecutor(8) as pool:
        assert Counter(pool.map(try_one, range(40))) == {"open": 7, "host_at_once": 33}


def test_a_migration_whose_end_is_not_known_holds_its_vm() -> None:
    waiting = intent(IntentState.UNKNOWN, 9999)
    assert closed(gates(under_way=[waiting])) == ("movement", "a is on its way already, by us")


def test_the_time_of_day_needs_its_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Gates(ENFORCE, Remembered(), (), datetime(2026, 3, 2, 12))
    assert Gates(ENFORCE, Remembered(), (), NOON)


def test_every_gate_stands_in_the_catalogue_once() -> None:
    found = {
        kind
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if issubclass(kind, Gate) and not inspect.isabstract(kind)
    }
    assert {type(gate) for gate in GATES} == found
    assert set(LIMITS) <= set(GATES)
    assert len({(gate.name, getattr(gate, "setting", "")) for gate in GATES}) == len(GATES)


def test_nothing_but_the_gates_can_make_an_admitted_step() -> None:
    passed = admitted(gates())
    with pytest.raises(TypeError, match="nothing else"):
        Admitted(passed.cluster, passed.what, object())
    with pytest.raises((TypeError, ValueError), match="key"):
        dataclasses.replace(passed, cluster="another")
    with pytest.raises(dataclasses.FrozenInstanceError):
        passed.cluster = "another"  # type: ignore[misc]


def test_the_key_does_not_leave_the_file_of_the_gates() -> None:
    assert [file.name for file in PACKAGE.rglob("*.py") if "_KEY" in file.read_text("utf-8")] == [
        "admission.py"
    ]


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
