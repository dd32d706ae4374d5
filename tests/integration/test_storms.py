"""A storm of starts, each of which holds a request thread of the engine until our units have answered, while
the inventory needs one to read the engine: no call fails for that, and no start takes much longer.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.integration.storms.clients import start_all
from tests.integration.storms.cluster import Storm, draw
from tests.integration.storms.stage import Figures, with_ours
from tests.speed import seconds_now

#: What 99 of 100 unit calls take at most on a fast machine at rest, however late the engine is.
P99_SECONDS = 1.5
#: What a client waits for its start; a test of one storm ends within twice that.
PATIENCE_SECONDS = 180.0


def run(storm: Storm, folder: Path, threads: int, max_age: float | None) -> Figures:
    """Run a storm, and assert what holds of each.

    Units want a newer snapshot than one that is `max_age` seconds old (None: as configured unless reported).
    """
    with with_ours(folder, storm.state, threads=threads, max_age=max_age) as stage:
        burst = start_all(stage.url, stage.token, storm.starts, patience=PATIENCE_SECONDS)
        found = stage.end()
    assert (found.causes, found.complaints) == ({}, [])
    assert (len(burst.refused), len(burst.lost)) == (0, 0)
    slowest = sorted(found.seconds)[math.ceil(0.99 * len(found.seconds)) - 1]
    assert slowest <= seconds_now(P99_SECONDS)
    assert storm.torn_chains(found.hosts) == []
    assert storm.violated(found.hosts) == 0
    return found


@pytest.mark.system
def test_more_starts_than_threads_while_nothing_is_fresh(tmp_path: Path) -> None:
    """Each decision wants a newer snapshot, for which there is no thread."""
    storm = draw(24)
    found = run(storm, tmp_path, threads=20, max_age=0.001)
    assert None not in {found.hosts[vm] for vm in storm.starts}
    assert len(found.seconds) >= len(storm.starts), "each start asks the filters"


@pytest.mark.nightly
@pytest.mark.parametrize("threads", [20, 200])
@pytest.mark.parametrize("starts", [24, 400])
@pytest.mark.parametrize("max_age", [None, 0.001], ids=["as usual", "nothing is fresh"])
def test_storms(starts: int, threads: int, max_age: float | None, tmp_path: Path) -> None:
    run(draw(starts), tmp_path, threads, max_age)
