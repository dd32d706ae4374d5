"""Every vector that comes with the project, one test each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import DATA
from tools.conformance.__main__ import main
from tools.conformance.kinds import JUDGEMENTS
from tools.conformance.vector import Vector, load

VECTORS = DATA / "vectors"


@pytest.mark.parametrize(
    "vector",
    [pytest.param(vector, id=vector.name) for vector in load(VECTORS) if vector.kind in JUDGEMENTS],
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
