"""What rules need besides the topology is read at once when it comes to be needed, and missed until then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.inventory.on_demand import NO_STATISTICS, Demands, Needed, Needs
from ovirt_placement.inventory.service.schedule import ReconciliationScope
from ovirt_placement.inventory.service.view import Reading
from tests.builders import cluster, host, snapshot, vm
from tests.placement.inventory.stage import Stage, staged

STATE = snapshot(cluster("c1"), host("h1", cluster="c1", tags=("rack-1",)), vm("a", "h1", cluster="c1"))
STATISTICS = ReconciliationScope.STATISTICS
TAGS = Needed(hosts=False, vms=False, tags=True)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, STATE) as found:
        yield found


def _tags(stage: Stage) -> tuple[str, ...]:
    return stage.follower.snapshot().host_by_id["h1"].tags


def test_tags_of_hosts_are_missed_until_they_are_read_and_asked_for_when_a_rule_needs_them(
    stage: Stage,
) -> None:
    stage.read(STATISTICS, Needs(statistics=Needed(hosts=True, vms=False)))
    stage.turn()
    assert stage.follower.lacking == NO_STATISTICS
    stage.follower.demands = Demands(host_tags=True)  # a rule came that goes by them
    stage.turn()
    assert stage.follower.lacking == TAGS
    assert stage.follower.required[ReconciliationScope.STATISTICS].since == stage.now
    stage.read(STATISTICS, stage.follower.needs)
    stage.turn()
    assert stage.follower.lacking == NO_STATISTICS
    assert _tags(stage) == ("rack-1",)


def test_a_host_that_comes_has_no_tags_before_they_are_read(stage: Stage) -> None:
    stage.follower.demands = Demands(host_tags=True)
    stage.turn()
    stage.read(STATISTICS, stage.follower.needs)
    stage.turn()
    assert stage.follower.lacking == NO_STATISTICS
    view = stage.follower.snapshot()
    more = replace(view.hosts[0], id="h2", name="h2", tags=())
    stage.follower.hand_in(Reading(stage.now, hosts=(*view.hosts, more)))
    stage.turn()
    stage.turn()
    assert stage.follower.lacking == TAGS
    assert stage.follower.required[ReconciliationScope.STATISTICS].since > 0
