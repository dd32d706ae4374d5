"""Random clusters with failures, people and refusals: no satisfied rule is violated, and all are repaired."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.enforcer.safety.cases import Case, drawn
from tests.enforcer.safety.ends import fewest_violated, of_cluster, violated
from tests.enforcer.safety.world import play
from tests.examples import seeds

#: Clusters that one engine has, and in the quick suite.
_AT_ONCE, _FEW = 20, 5


def judged(cases: Sequence[Case], folder: Path, seed: int) -> list[str]:
    """All that went wrong while these cases were played, and what could be repaired still."""
    world = play(cases, folder, seed)
    end = world.engine.snapshot()
    faults = list(world.recorder.faults)
    for case in cases:
        left = of_cluster(end, case)
        count = violated(left)
        least = fewest_violated(left) if count else 0
        if count > least:
            faults.append(f"{case.cluster} ends with {count} hard rules violated, where {least} must stay")
        moving = [vm.id for vm in left.vms if vm.status == "migrating"]
        if moving:
            faults.append(f"{case.cluster} ends with {', '.join(moving)} on the way")
    return faults


@pytest.mark.system
def test_nothing_that_held_is_violated_and_the_end_is_repaired_or_cannot_be(tmp_path: Path) -> None:
    assert judged([drawn(number) for number in range(_FEW)], tmp_path, 0) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", seeds(4))
def test_the_same_for_many_clusters(seed: int, tmp_path: Path) -> None:
    cases = [drawn(number) for number in range(seed * _AT_ONCE, (seed + 1) * _AT_ONCE)]
    assert judged(cases, tmp_path, seed) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1))
def test_the_same_for_larger_clusters(seed: int, tmp_path: Path) -> None:
    cases = [drawn(10_000 + number, vms=7) for number in range(seed * 25, (seed + 1) * 25)]
    assert judged(cases, tmp_path, 10_000 + seed) == []
