"""Whatever goes wrong: no VM is asked for twice at once, no rule newly violated, nothing needless or lost."""

import time
from pathlib import Path
from random import Random

import pytest

from tests.enforcer.faults.faults import FAULTS, stopped_before_a_log_in
from tests.enforcer.faults.stage import drawn, stage
from tests.examples import seeds
from tests.proxy.running import eventually

#: It is in the quick suite.
QUICK = "500 after acting"
#: Neither the lease ends nor the patience with the engine, but what was read grows older than it may.
_PATIENCE, _LEASE, _TOO_OLD = 30.0, 60.0, 3.5

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


@pytest.mark.system
def test_nothing_is_migrated_on_what_was_read_before_a_log_in_that_took_long(tmp_path: Path) -> None:
    """An enforcer that leads still when it wakes: what it had decided before is too old nevertheless."""

    def hold() -> None:
        until = time.monotonic() + _TOO_OLD
        eventually(lambda: time.monotonic() > until)

    with stage(tmp_path, drawn(0), patience=_PATIENCE, lease=_LEASE) as made:
        stopped_before_a_log_in(made, hold)
        made.until_over()
        assert "too old" in made.enforcer.said
        assert made.recorder.ours == []
        assert made.faults() == []
