"""Whatever goes wrong: no VM is asked for twice at once, no rule newly violated, nothing needless or lost."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.examples import seeds
from tools.faults.clusters import drawn
from tools.faults.faults import FAULTS
from tools.faults.stage import stage

#: It is in the quick suite.
QUICK = "500 after acting"

#: Each fault on one cluster of two that take turns; where many examples are asked for, on more.
CASES = [
    pytest.param(
        name,
        at % 2 + 2 * turn,
        marks=() if (name, turn) == (QUICK, 0) else pytest.mark.nightly,
        id=f"{name} {turn}",
    )
    for at, name in enumerate(FAULTS)
    for turn in seeds(4)
]


@pytest.mark.system
@pytest.mark.parametrize(("name", "seed"), CASES)
def test_all_four_invariants_hold_and_the_cluster_ends_repaired(name: str, seed: int, tmp_path: Path) -> None:
    with stage(tmp_path, drawn(seed)) as made:
        FAULTS[name](made, Random(f"{name} {seed}"))
        made.until_over()
        faults = made.faults()
        assert not faults, "\n".join([*faults, made.story])
