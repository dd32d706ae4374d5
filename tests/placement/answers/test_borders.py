"""Where answers change: what is not proven is not safe, and how many hours a column of a trend stands for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.ha.check import ha_check
from ovirt_placement.answers.status.history import MOST_POINTS, trend
from ovirt_placement.store.enforcer.observations import Sample
from ovirt_service.errors import UserError
from tests.builders import cluster, host, snapshot, vm

RESERVING = cluster(ha_reservation=True)


@pytest.mark.parametrize(
    ("free_mb", "steps", "safe"), [(4000, 1000, True), (500, 1000, False), (4000, 0, None)]
)
def test_only_what_is_proven_is_safe(free_mb: int, steps: int, safe: bool | None) -> None:
    state = snapshot(RESERVING, host("h1"), host("h2", free_mb=free_mb), vm("a", "h1", ha=True))
    answer = ha_check(state, (RESERVING,), steps=steps)
    assert (answer.clusters[0].safe, answer.safe) == (safe, safe is True)


def test_no_more_hosts_can_fail_than_are_up() -> None:
    state = snapshot(RESERVING, host("h1"), host("h2"), host("h3", status="maintenance"))
    assert ha_check(state, (RESERVING,), failures=2).clusters[0].failures == 2
    with pytest.raises(UserError, match="2 hosts that are up"):
        ha_check(state, (RESERVING,), failures=3)


@given(st.sampled_from([1, 2, 3, 6, 12, 24, 48, 72]), st.integers(-1, 1), st.integers(0, 100))
def test_a_column_is_as_short_as_the_columns_allow(span: int, more: int, start: int) -> None:
    """Exactly as many hours as 48 columns of a span have take that span, and one more takes the next."""
    hours = span * MOST_POINTS + more
    samples = [Sample(cluster="c", hour=start + at, done=1) for at in range(hours)]
    answer = trend(samples, cluster=None, since=start * 3600.0, until=(start + hours - 1) * 3600.0)
    shortest = next(one for one in (1, 2, 3, 6, 12, *range(24, 200, 24)) if one * MOST_POINTS >= hours)
    assert answer.point_hours == shortest
    (found,) = answer.clusters
    assert len(found.points) == -(-hours // shortest) <= MOST_POINTS
    assert sum(point.activity.migrations for point in found.points) == hours
