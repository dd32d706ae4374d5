"""Storms in the moment when a part is killed or hangs, and comes back: no lawful start is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.storms import figures
from tests.integration.storms.clients import Answered, Burst, start_all
from tests.integration.storms.cluster import draw
from tests.integration.storms.figures import Calls
from tests.integration.storms.outages import outage
from tests.integration.storms.stage import ENGINE, INVENTORY, PROXY, Stage, with_ours

THREADS = 20
STARTS = 80
#: The part goes when this many starts of the first half are answered.
ANSWERED = 8
PATIENCE_SECONDS = 60.0
#: No call of a unit waits for an engine that hangs, however long it does.
SLOWEST_SECONDS = 1.5
#: Simulated seconds a second: what has started before an engine dies is soon up.
TIME_SCALE = 10


def start(stage: Stage, vms: Sequence[str], answered: Answered | None = None) -> Burst:
    return start_all(stage.url, stage.token, vms, patience=PATIENCE_SECONDS, answered=answered)


@pytest.mark.system
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "frozen"])
@pytest.mark.parametrize("part", [INVENTORY, PROXY])
def test_a_part_of_ours_goes_and_comes_back(part: str, killed: bool, tmp_path: Path) -> None:
    _go_and_come_back(part, tmp_path, killed=killed)


@pytest.mark.system
def test_the_engine_hangs_and_goes_on(tmp_path: Path) -> None:
    calls = _go_and_come_back(ENGINE, tmp_path, killed=False)
    assert (calls.failed, dict(calls.causes)) == (0, {})
    assert max(calls.seconds) <= SLOWEST_SECONDS


def _go_and_come_back(part: str, folder: Path, *, killed: bool) -> Calls:
    """Half of the starts meet a part that goes, and the others one that comes; give what was called."""
    storm = draw(STARTS)
    first, second = storm.starts[: STARTS // 2], storm.starts[STARTS // 2 :]
    with with_ours(folder, storm.state, threads=THREADS) as stage:
        with outage(stage, part, ANSWERED, killed=killed) as befalling:
            before = start(stage, first, befalling.answered)
            befalling.wait_for_return()
            after = start(stage, second)
        found = figures.of(storm, after, stage)
        assert [(len(burst.refused), len(burst.lost)) for burst in (before, after)] == [(0, 0)] * 2
        assert found.violated == 0
        assert None not in {found.hosts[vm] for vm in storm.starts}
        return found.calls


@pytest.mark.system
def test_the_engine_dies_and_comes_back_with_what_it_had_saved(tmp_path: Path) -> None:
    """Of the second half it has forgotten all, decided or not; we expect some of these VMs somewhere."""
    storm = draw(STARTS)
    first, second = storm.starts[: STARTS // 2], storm.starts[STARTS // 2 :]
    with with_ours(tmp_path, storm.state, threads=THREADS, time_scale=TIME_SCALE) as stage:
        bursts = [start(stage, first)]
        saved = stage.until_up(first)

        async def answered(count: int) -> None:
            if count == ANSWERED:
                stage.kill(ENGINE)

        bursts.append(start_all(stage.url, stage.token, second, patience=PATIENCE_SECONDS, answered=answered))
        assert bursts[1].lost
        stage.restart_engine(saved)
        bursts.append(start(stage, second))
        assert [len(burst.refused) for burst in bursts] == [0, 0, 0]
        assert bursts[2].lost == ()
        assert storm.violated(stage.hosts()) == 0
        assert stage.down(storm.starts) == []
