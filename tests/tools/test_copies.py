"""Of some of the engine's units the product and the simulator have a copy each: they share nothing and agree.

With the engine itself both are compared by `make engine-conformance`, which needs the engine's classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.examples import examples
from tools.engine_conformance.comparing import Unit, compare
from tools.engine_conformance.questions import Question
from tools.engine_conformance.units import UNITS

TWICE = {name: unit for name, unit in UNITS.items() if {"product", "simulator"} <= unit.copies.keys()}


@pytest.mark.parametrize("unit", TWICE.values(), ids=list(TWICE))
def test_both_copies_of_a_unit_answer_alike(unit: Unit) -> None:
    simulator = unit.copies["simulator"]

    def ask(questions: Sequence[Question]) -> list[Any]:
        return [simulator.answer(question) for question in questions]

    found = compare(unit, ask, unit.questions(2, examples(160)), ["product"])["product"]
    assert found.differences == []
