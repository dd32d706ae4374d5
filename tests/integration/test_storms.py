"""Storms of starts, each of which holds a request thread of the engine until our units have answered.

While the inventory needs a thread to read the engine, and while a part hangs and goes on, no call fails for
that, no lawful start is refused, and none takes much longer.
"""

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from tests.integration.storms import (
    INVENTORY,
    Answered,
    Burst,
    Figures,
    Stage,
    Storm,
    draw,
    start_all,
    with_ours,
)
from tests.integration.world import ENGINE, PROXY
from tests.speed import seconds_now

#: What 99 of 100 unit calls take at most on a fast machine at rest, however late the engine is.
P99_SECONDS = 1.5
#: What a client waits for its start; a test of one storm ends within twice that.
PATIENCE_SECONDS = 60.0


def run(storm: Storm, folder: Path, threads: int, max_age: float | None) -> Figures:
    """Run a storm, and assert what holds of each.

    Units want a newer snapshot than one that is `max_age` seconds old (None: as configured unless reported).
    """
    with with_ours(folder, storm.state, threads=threads, max_age=max_age) as stage:
        burst = start(stage, storm.starts)
        found = stage.end()
    assert (found.causes, found.complaints) == ({}, [])
    assert (len(burst.refused), len(burst.lost)) == (0, 0)
    slowest = sorted(found.seconds)[math.ceil(0.99 * len(found.seconds)) - 1]
    assert slowest <= seconds_now(P99_SECONDS)
    assert (storm.torn_chains(found.hosts), storm.violated(found.hosts)) == ([], 0)
    return found


#: Starts, threads, and the age; the first has more starts than threads, and each wants a newer snapshot.
_STORMS = list(product((24, 400), (20, 200), (0.001, None)))


@pytest.mark.parametrize(
    ("starts", "threads", "max_age"),
    [
        pytest.param(*_STORMS[0], marks=pytest.mark.system),
        *(pytest.param(*one, marks=pytest.mark.nightly) for one in _STORMS[1:]),
    ],
)
def test_storms(starts: int, threads: int, max_age: float | None, tmp_path: Path) -> None:
    storm = draw(starts)
    found = run(storm, tmp_path, threads, max_age)
    assert None not in {found.hosts[vm] for vm in storm.starts}
    assert len(found.seconds) >= len(storm.starts), "each start asks the filters"


THREADS = 20
STARTS = 80
#: The part hangs when this many starts of the first half are answered, and for so long.
ANSWERED, HANGING_SECONDS = 8, 3.0
#: No call of a unit waits for an engine that hangs, however long it does.
SLOWEST_SECONDS = 1.5


def start(stage: Stage, vms: Sequence[str], answered: Answered = lambda count: None) -> Burst:
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

    def answered(count: int) -> None:
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
