"""Further vectors of placement keys, worked out by hand; those that were given are in tests/data/vectors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.paths import DATA
from tools.conformance import placement_keys
from tools.conformance.vector import Vector, load

VECTORS = DATA / "keys"


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector.name) for vector in load(VECTORS)])
def test_answer_agrees(vector: Vector) -> None:
    assert placement_keys.judge(vector) is None


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector.name) for vector in load(VECTORS)])
def test_answer_is_held_against_every_expectation(vector: Vector) -> None:
    """The judge would notice: it refuses a vector as soon as one of its expectations is another."""
    expected = vector.content["expected"]
    for part, wanted in expected.items():
        wrong = {**vector.content, "expected": {**expected, part: _another(wanted)}}
        assert placement_keys.judge(Vector(vector.name, vector.kind, wrong)) is not None


def _another(wanted: Any) -> Any:
    if isinstance(wanted, dict):
        return {**wanted, "another": 1} if not wanted else {key: _another(one) for key, one in wanted.items()}
    if isinstance(wanted, list):
        return [*wanted, ["another"]]
    return wanted + 1e-6 if isinstance(wanted, int | float) else "another"
