"""The larger readings come each at its time, and at once when one is demanded."""

from __future__ import annotations

from ovirt_placement.config import InventorySettings
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import NOTHING, Needed, Needs
from ovirt_placement.inventory.service.schedule import Reconciliation, ReconciliationScope

SETTINGS = InventorySettings(
    hosts_interval_seconds=15,
    vms_interval_seconds=60,
    statistics_interval_seconds=40,
    details_interval_seconds=600,
)
WITH_STATISTICS = Needs(statistics=Needed(hosts=True, vms=False))
WITH_DISKS = Needs(details=Detail.DISKS)


def schedule() -> Reconciliation:
    return Reconciliation(
        SETTINGS, ReconciliationScope.WHOLE, ReconciliationScope.HOSTS, ReconciliationScope.STATISTICS
    )


def lived(made: Reconciliation, until: float, needs: Needs) -> list[tuple[float, ReconciliationScope]]:
    """Make every reading as soon as it is due, each in no time."""
    now, found = 0.0, []
    while now <= until:
        while (scope := made.next_reading(now, needs)) is not None:
            made.done(scope, now)
            found.append((now, scope))
        now += made.pause(now, needs)
    return found


def test_each_scope_has_its_interval_and_a_whole_reading_has_the_hosts_in_it() -> None:
    made = schedule()
    made.require({ReconciliationScope.WHOLE: 0.0})
    assert lived(made, 100.0, NOTHING) == [
        (0.0, ReconciliationScope.WHOLE),
        (15.0, ReconciliationScope.HOSTS),
        (30.0, ReconciliationScope.HOSTS),
        (45.0, ReconciliationScope.HOSTS),
        (60.0, ReconciliationScope.WHOLE),
        (75.0, ReconciliationScope.HOSTS),
        (90.0, ReconciliationScope.HOSTS),
    ]


def test_statistics_are_read_where_they_are_needed_first_after_the_start() -> None:
    made = schedule()
    made.require({ReconciliationScope.WHOLE: 0.0})
    found = lived(made, 100.0, WITH_STATISTICS)
    assert [now for now, scope in found if scope is ReconciliationScope.STATISTICS] == [0.0, 40.0, 80.0]


def test_statistics_wait_for_a_reader_but_not_for_ever() -> None:
    made = Reconciliation(SETTINGS, ReconciliationScope.STATISTICS, patience=5.0)
    made.require({ReconciliationScope.STATISTICS: 0.0})
    assert [now for now, _ in lived(made, 500.0, WITH_STATISTICS)] == [0.0, 200.0, 400.0]
    made.asked(501.0)
    assert [made.next_reading(now, WITH_STATISTICS) for now in (439.0, 501.0)] == [
        None,
        ReconciliationScope.STATISTICS,
    ]
    made.done(ReconciliationScope.STATISTICS, 501.0)
    made.asked(510.0)
    made.asked(520.0)
    assert made.pause(520.0, WITH_STATISTICS) == 21.0


def test_nothing_is_due_before_the_first_demand() -> None:
    made = schedule()
    assert made.next_reading(1000.0, WITH_STATISTICS) is None
    assert made.pause(1000.0, WITH_STATISTICS) > 0


def test_a_demand_is_met_only_by_a_reading_that_began_later() -> None:
    made = schedule()
    made.require({ReconciliationScope.WHOLE: 0.0})
    made.done(ReconciliationScope.WHOLE, 1.0)
    assert made.require({ReconciliationScope.WHOLE: 2.0})
    assert not made.require({ReconciliationScope.WHOLE: 1.5})  # asked for already
    made.done(ReconciliationScope.WHOLE, 1.9)
    assert made.next_reading(3.0, NOTHING) is ReconciliationScope.WHOLE
    made.done(ReconciliationScope.WHOLE, 2.0)
    assert made.next_reading(3.0, NOTHING) is None


def test_details_are_read_at_long_intervals_and_at_once_when_others_are_needed() -> None:
    made = Reconciliation(SETTINGS, ReconciliationScope.DETAILS)
    made.require({ReconciliationScope.DETAILS: 0.0})
    assert lived(made, 700.0, WITH_DISKS) == [
        (0.0, ReconciliationScope.DETAILS),
        (600.0, ReconciliationScope.DETAILS),
    ]
    made.require({ReconciliationScope.DETAILS: 701.0})
    assert made.next_reading(702.0, WITH_DISKS) is ReconciliationScope.DETAILS


def test_details_that_nothing_needs_are_never_read_even_if_they_were_demanded() -> None:
    made = Reconciliation(SETTINGS, ReconciliationScope.DETAILS)
    made.require({ReconciliationScope.DETAILS: 0.0})
    assert lived(made, 10_000.0, WITH_STATISTICS) == []
    assert lived(made, 0.0, WITH_DISKS) == [(0.0, ReconciliationScope.DETAILS)]
