"""Storms in the moment when a part hangs, and goes on: no lawful start is refused.

Those in which parts are killed: `test_kills`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.storms.clients import Answered, Burst, start_all
from tests.integration.storms.cluster import draw
from tests.integration.storms.stage import INVENTORY, Stage, with_ours
from tests.integration.world import ENGINE, PROXY

THREADS = 20
STARTS = 80
#: The part hangs when this many starts of the first half are answered, and for so long.
ANSWERED, HANGING_SECONDS = 8, 3.0
PATIENCE_SECONDS = 60.0
#: No call of a unit waits for an engine that hangs, however long it does.
SLOWEST_SECONDS = 1.5


def start(stage: Stage, vms: Sequence[str], answered: Answered | None = None) -> Burst:
    return start_all(stage.url, stage.token, vms, patience=PATIENCE_SECONDS, answered=answered)


@contextmanager
def hanging(stage: Stage, part: str) -> Iterator[tuple[Answered, threading.Event]]:
    """Hang a part as soon as starts are answered; the event is set when it is about to go on."""
    going_on = threading.Event()

    def hang() -> None:
        stage.processes.freeze(part)
        threading.Event().wait(HANGING_SECONDS)
        going_on.set()
        stage.processes.thaw(part)

    thread = threading.Thread(target=hang)

    async def answered(count: int) -> None:
        if count == ANSWERED:
            thread.start()

    yield answered, going_on
    thread.join(PATIENCE_SECONDS)


@pytest.mark.system
@pytest.mark.parametrize("part", [INVENTORY, PROXY, ENGINE])
def test_a_part_hangs_and_goes_on(part: str, tmp_path: Path) -> None:
    """Half of the starts meet a part that hangs, and the others one that has just hung."""
    storm = draw(STARTS)
    first, second = storm.starts[: STARTS // 2], storm.starts[STARTS // 2 :]
    with with_ours(tmp_path, storm.state, threads=THREADS) as stage:
        with hanging(stage, part) as (answered, going_on):
            before = start(stage, first, answered)
            assert going_on.wait(PATIENCE_SECONDS), f"{part} did not hang and go on"
            after = start(stage, second)
        found = stage.end()
    assert [(len(burst.refused), len(burst.lost)) for burst in (before, after)] == [(0, 0)] * 2
    assert storm.violated(found.hosts) == 0
    assert None not in {found.hosts[vm] for vm in storm.starts}
    if part == ENGINE:
        assert found.causes == {}
        assert max(found.seconds) <= SLOWEST_SECONDS
