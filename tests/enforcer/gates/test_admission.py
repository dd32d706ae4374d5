"""Nothing reaches the engine but by way of the one place that asks every gate."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import ovirt_enforcer
from ovirt_enforcer import gates as room
from ovirt_enforcer.gates.admission import Admitted, Gates
from ovirt_enforcer.gates.catalogue import GATES
from ovirt_enforcer.gates.gate import Gate
from ovirt_enforcer.planning.planner import make_plan
from ovirt_enforcer.settings import EnforcerSettings
from tests.builders import CLUSTER, cluster, host, snapshot

from .judging import ENFORCE, PARTS, admitted, closed

PACKAGE = Path(ovirt_enforcer.__file__).parent


def test_a_step_passes_when_nothing_speaks_against_it() -> None:
    passed = admitted(Gates(ENFORCE, (), ()))
    assert (passed.cluster, passed.step) == (CLUSTER, make_plan(snapshot(*PARTS), CLUSTER).steps[0])


def test_the_rules_are_asked_again_of_the_newest_snapshot() -> None:
    full = (host("h1"), host("h2", free_mb=1), *PARTS[2:])
    reason = "the rules or the room on the target no longer allow it"
    assert closed(Gates(ENFORCE, (), ()), *full) == ("legality", reason)


def test_the_first_gate_that_is_closed_says_why() -> None:
    upgraded = (*PARTS, cluster(upgrade_mode=True))
    assert closed(Gates(EnforcerSettings(), (), ()), *upgraded)[0] == "mode"


def test_every_gate_stands_in_the_catalogue_once() -> None:
    found = {
        kind
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if issubclass(kind, Gate) and not inspect.isabstract(kind)
    }
    assert sorted(map(_name, GATES)) == sorted(kind.name for kind in found)
    assert len(set(map(_name, GATES))) == len(GATES)


def test_nothing_but_the_gates_can_make_an_admitted_step() -> None:
    passed = admitted(Gates(ENFORCE, (), ()))
    with pytest.raises(TypeError, match="nothing else"):
        Admitted(passed.cluster, passed.step, object())
    with pytest.raises(ValueError, match="key"):
        dataclasses.replace(passed, cluster="another")
    with pytest.raises(dataclasses.FrozenInstanceError):
        passed.cluster = "another"  # type: ignore[misc]


def test_the_key_does_not_leave_the_file_of_the_gates() -> None:
    assert [file.name for file in PACKAGE.rglob("*.py") if "_KEY" in file.read_text("utf-8")] == [
        "admission.py"
    ]


def test_only_what_takes_an_admitted_step_asks_the_engine_for_a_migration() -> None:
    callers = list(_callers_of("migrate"))
    assert [(file, function.name) for file, function in callers] == [("executor.py", "begin")]
    annotation = callers[0][1].args.args[1].annotation
    assert isinstance(annotation, ast.Name)
    assert annotation.id == Admitted.__name__


def _name(gate: Gate) -> str:
    return gate.name


def _callers_of(name: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of the enforcer that call something of this name, with their files."""
    for file in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
                for node in ast.walk(function)
            ):
                yield file.name, function
