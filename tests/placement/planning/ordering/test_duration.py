"""How long a migration is estimated to take."""

from __future__ import annotations

import pytest

from ovirt_placement.planning.verification import Pace, migration_seconds, step_seconds
from tests.builders import vm

PACE = Pace(host_mb_per_second=100.0, at_once=2, overhead_seconds=10.0)


def test_the_memory_goes_over_the_wire_once() -> None:
    assert migration_seconds(4096, PACE) == pytest.approx(10 + 4096 / 50)


def test_memory_that_is_written_meanwhile_goes_again() -> None:
    assert migration_seconds(5000, PACE, dirty_mb_per_second=25) == pytest.approx(
        10 + 2 * 5000 / 50, rel=0.01
    )


def test_a_guest_that_writes_faster_than_can_be_sent_still_ends() -> None:
    assert migration_seconds(1000, PACE, dirty_mb_per_second=50) == pytest.approx(10 + 8 * 1000 / 50)


def test_only_memory_in_use_is_sent_and_all_where_nobody_knows() -> None:
    known, unknown = (vm("a", "h1", memory_mb=1024, usage_mem_percent=percent) for percent in (25, None))
    assert step_seconds([known], PACE) == pytest.approx(migration_seconds(256, PACE))
    assert step_seconds([unknown], PACE) == pytest.approx(migration_seconds(1024, PACE))


def test_a_group_that_moves_at_once_queues_on_its_host() -> None:
    one = step_seconds([vm("a", "h1")], PACE)
    assert step_seconds([vm("a", "h1"), vm("b", "h1")], PACE) == pytest.approx(one)
    assert step_seconds([vm(name, "h1") for name in "abcdef"], PACE) == pytest.approx(3 * one)


def test_the_longest_of_a_group_may_outlast_the_others() -> None:
    large, small = vm("a", "h1", needs_mb=65536), vm("b", "h1")
    assert step_seconds([large, small], PACE) == pytest.approx(step_seconds([large], PACE))
