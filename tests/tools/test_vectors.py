"""Every vector that comes with the project, one test each."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.paths import DATA
from tools import key_vectors
from tools.conformance import JUDGEMENTS, Vector, load, main

VECTORS = DATA / "vectors"
#: Further vectors of placement keys, worked out by hand.
BY_HAND = DATA / "keys"


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(vector, id=vector.name)
        for vector in (*load(VECTORS), *load(BY_HAND))
        if vector.kind in JUDGEMENTS
    ],
)
def test_answer_agrees(vector: Vector) -> None:
    assert JUDGEMENTS[vector.kind](vector) is None


def test_summary_counts_every_vector(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(VECTORS)]) == 0
    summary = re.fullmatch(r"agree (\d+), differ 0, not yet (\d+)\n", capsys.readouterr().out)
    assert sum(map(int, summary.groups())) == len(list(VECTORS.rglob("*.json")))


def test_differing_vector_is_named_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = (VECTORS / "rules" / "vm_affinity_filter--positive-peers-one-host.json").read_text()
    (tmp_path / "wrong.json").write_text(re.sub(r'("expected": {\s*"hosts": \[)[^]]*', r'\1"host1"', right))
    (tmp_path / "unreadable.json").write_text(right.replace('"vm1"', '"vm9"', 1))
    assert main([str(tmp_path)]) == 1
    unreadable, wrong, summary = capsys.readouterr().out.splitlines()
    assert wrong == "wrong: hosts ['host2'] instead of ['host1']"
    assert unreadable.startswith("unreadable: UserError: ")
    assert summary == "agree 0, differ 2, not yet 0"


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector.name) for vector in load(BY_HAND)])
def test_answer_is_held_against_every_expectation(vector: Vector) -> None:
    """The judge would notice: it refuses a vector as soon as one of its expectations is another."""
    expected = vector.content["expected"]
    for part, wanted in expected.items():
        wrong = {**vector.content, "expected": {**expected, part: _another(wanted)}}
        assert key_vectors.judge(wrong) is not None


def _another(wanted: Any) -> Any:
    if isinstance(wanted, dict):
        return {**wanted, "another": 1} if not wanted else {key: _another(one) for key, one in wanted.items()}
    if isinstance(wanted, list):
        return [*wanted, ["another"]]
    return wanted + 1e-6 if isinstance(wanted, int | float) else "another"
