"""A storm of starts, each of which holds a request thread of the engine until our units have answered, while
the inventory needs one to read the engine: no call fails for that, and no start takes much longer.
"""

from __future__ import annotations

import pytest

from tests.integration.storms.cluster import draw
from tests.integration.storms.figures import Figures, run_with_ours
from tests.speed import seconds_now

#: What 99 of 100 unit calls take at most on a fast machine at rest, however late the engine is.
P99_SECONDS = 1.5
#: What a client waits for its start; a test of one storm ends within twice that.
PATIENCE_SECONDS = 180.0


def check(found: Figures) -> None:
    """Assert what holds of each storm."""
    assert (found.calls.failed, dict(found.calls.causes)) == (0, {})
    assert (len(found.unit_failures), found.unreachable) == (0, 0)
    assert (len(found.burst.refused), len(found.burst.lost)) == (0, 0)
    assert found.calls.percentile(99) <= seconds_now(P99_SECONDS)
    assert found.torn_chains == ()
    assert found.violated == 0


@pytest.mark.system
def test_more_starts_than_threads_while_nothing_is_fresh() -> None:
    """Each decision wants a newer snapshot, for which there is no thread."""
    storm = draw(24)
    found = run_with_ours(storm, threads=20, patience=PATIENCE_SECONDS, max_age=0.001)
    check(found)
    assert None not in {found.hosts[vm] for vm in storm.starts}
    assert len(found.calls.seconds) >= len(storm.starts), "each start asks the filters"


@pytest.mark.nightly
@pytest.mark.parametrize("threads", [20, 200])
@pytest.mark.parametrize("starts", [24, 400])
@pytest.mark.parametrize("max_age", [None, 0.001], ids=["as usual", "nothing is fresh"])
def test_storms(starts: int, threads: int, max_age: float | None) -> None:
    check(run_with_ours(draw(starts), threads, PATIENCE_SECONDS, max_age=max_age))
