"""Whatever goes wrong: no VM is asked for twice at once, no rule newly violated, nothing needless or lost."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.faults.catalogue import FAULTS
from tests.faults.clusters import drawn
from tests.faults.stage import stage

SEEDS = range(2)
#: It is in the quick suite.
QUICK = ("500 after acting", 0)

CASES = [
    pytest.param(name, seed, marks=() if (name, seed) == QUICK else pytest.mark.slow, id=f"{name} {seed}")
    for name in FAULTS
    for seed in SEEDS
]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_all_four_invariants_hold_and_the_cluster_ends_repaired(name: str, seed: int, tmp_path: Path) -> None:
    with stage(tmp_path, drawn(seed)) as made:
        FAULTS[name](made, Random(f"{name} {seed}"))
        made.until_over()
        faults = made.faults()
        assert not faults, "\n".join([*faults, made.story])
