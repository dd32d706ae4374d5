"""What a cluster's scheduling properties say of HA reservation reaches the snapshot."""

from __future__ import annotations

import pytest

from ovirt_placement.engine.parsing.clusters import failures
from ovirt_placement.engine.reading.topology import read_snapshot
from ovirt_placement.rules.failover import check
from tests.builders import cluster, host, snapshot, vm
from tests.placement.engine.test_simulated import simulated


def test_failures_and_failover_hosts_are_read() -> None:
    said = {"ha_failures": "2", "ha_failover_hosts": "spare,other"}
    state = snapshot(
        cluster("c1", scheduling_properties=said),
        cluster("c2"),
        host("h1", name="north", cluster="c1"),
        host("h2", name="spare", cluster="c1"),
        host("h3", name="other", cluster="c2"),
    )
    with simulated(state) as (_, connection):
        read = read_snapshot(connection)
    assert {each.id: each.ha_failures for each in read.clusters} == {"c1": 2, "c2": 1}
    assert {each.name: each.failover for each in read.hosts} == {
        "north": False,
        "spare": True,
        "other": False,
    }


@pytest.mark.parametrize("said", [{}, {"ha_failures": ""}, {"ha_failures": "0"}, {"ha_failures": "two"}])
def test_one_failure_is_survived_unless_more_is_asked(said: dict[str, str]) -> None:
    assert failures(said) == 1


def test_the_check_survives_as_many_failures_as_were_asked() -> None:
    state = snapshot(
        cluster("c1", ha_reservation=True, scheduling_properties={"ha_failures": "2"}),
        *(host(f"h{number}", cluster="c1", memory_mb=4096, free_mb=1024) for number in range(3)),
        *(vm(f"v{number}", f"h{number}", cluster="c1", ha=True, needs_mb=1024) for number in range(3)),
    )
    with simulated(state) as (_, connection):
        read = read_snapshot(connection)
    assert check.check(read, "c1", 1, 10_000).safe is True
    assert check.check(read, "c1", read.clusters[0].ha_failures, 10_000).safe is False
