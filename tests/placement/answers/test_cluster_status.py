"""A cluster in numbers: what is free counts hosts that are up alone, and CPU counts by cores."""

from __future__ import annotations

import pytest

from ovirt_placement.answers.status.clusters import cluster_status
from tests.builders import CLUSTER, cluster, host, snapshot, vm


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


def test_a_cluster_without_hosts_has_no_load() -> None:
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
