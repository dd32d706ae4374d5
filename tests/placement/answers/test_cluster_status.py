"""A cluster in numbers, what is not proven is not safe, and how many hours a column of a trend stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.question import ConfiguredState
from ovirt_placement.answers.status.clusters import cluster_status
from ovirt_placement.answers.status.ha_report import check_ha
from ovirt_placement.answers.status.history import MOST_POINTS, trend
from ovirt_placement.store.enforcer.observations import Sample
from tests.builders import CLUSTER, cluster, host, snapshot, vm


# -- A cluster in numbers: what is free counts hosts that are up alone, and CPU counts by cores.
def test_headroom_is_that_of_hosts_that_are_up_and_unequal_hosts_count_by_their_cores() -> None:
    state = snapshot(
        host("small", memory_mb=1000, free_mb=-200, cores=2, cpu_percent=100),
        host("large", memory_mb=9000, free_mb=3000, cores=6, cpu_percent=20),
        host("silent", memory_mb=500, free_mb=500, cores=64, cpu_percent=None),
        host("away", memory_mb=70_000, free_mb=70_000, cores=64, cpu_percent=0, status="maintenance"),
    )
    found = cluster_status(state, CLUSTER)
    assert (found.memory_mb, found.memory_free_mb) == (10_500, 3500)
    assert found.cpu_percent == 40.0
    found = cluster_status(snapshot(), CLUSTER)
    assert (found.memory_mb, found.memory_free_mb, found.cpu_percent) == (0, 0, None)


@pytest.mark.parametrize(("free_mb", "survived"), [(9000, 2), (4000, 1), (500, 0)])
def test_of_two_failures_that_are_asked_for_those_survived_are_counted(free_mb: int, survived: int) -> None:
    """Two VMs of about 3 GiB and three hosts: on one host there is room for both, for one or for none."""
    state = snapshot(
        cluster(ha_reservation=True, ha_failures=2),
        *(host(name, free_mb=free_mb) for name in ("h1", "h2", "h3")),
        vm("v1", "h1", ha=True, needs_mb=3000),
        vm("v2", "h2", ha=True, needs_mb=3000),
    )
    found = cluster_status(state, CLUSTER)
    assert (found.ha_safe, found.failures_survived) == (survived == 2, survived)


# -- Where answers change: what is not proven is not safe, and how many hours a column of a trend stands for.
RESERVING = cluster(ha_reservation=True)


@pytest.mark.parametrize(
    ("free_mb", "steps", "safe"), [(4000, 1000, True), (500, 1000, False), (4000, 0, None)]
)
def test_only_what_is_proven_is_safe(free_mb: int, steps: int, safe: bool | None) -> None:
    state = snapshot(RESERVING, host("h1"), host("h2", free_mb=free_mb), vm("a", "h1", ha=True))
    answer = check_ha(ConfiguredState(state, pytest.fail), steps=steps)
    assert (answer.clusters[0].safe, answer.safe) == (safe, safe is True)


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
