"""After many failures in a cluster the breaker opens, tries one migration, and closes once one succeeds."""

from __future__ import annotations

import pytest

from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import Intent, IntentState
from tests.builders import CLUSTER, host, vm

from .judging import PARTS, admitted, closed, gates, intent

DONE, FAILED, ACCEPTED = IntentState.DONE, IntentState.FAILED, IntentState.ACCEPTED


def failures(*ages: float) -> tuple[Intent, ...]:
    return tuple(intent(FAILED, age, f"v{age}") for age in ages)


def test_it_opens_after_many_failures_within_its_time() -> None:
    reason = (
        "5 migrations failed here of late, the last for this reason: it broke;"
        " the next is tried 900 s after that, or after ovirt-enforcer resume"
    )
    assert closed(gates(history=failures(1500, 1000, 500, 20, 10))) == ("breaker", reason)
    assert admitted(gates(history=failures(1000, 500, 20, 10)))
    assert admitted(gates(history=failures(1811, 1000, 500, 20, 10)))
    assert admitted(gates(history=failures(2000, 1900, 1850, 1000, 950)))


def test_refusals_and_what_was_never_asked_are_no_failures() -> None:
    for cause in (Cause.TARGET_REFUSED, Cause.VM_REFUSED, Cause.NEVER_ASKED):
        many = tuple(intent(FAILED, age, f"v{age}", cause=cause) for age in range(9, 0, -1))
        assert admitted(gates(history=many))


def test_failures_of_another_cluster_do_not_open_it() -> None:
    elsewhere = tuple(intent(FAILED, age, f"v{age}", cluster="other") for age in range(9, 0, -1))
    assert admitted(gates(history=elsewhere))


def test_a_group_that_was_moved_at_once_fails_once() -> None:
    of_one = tuple(intent(FAILED, 10, f"v{at}", correlation_id=f"id-{at}" if at else "id") for at in range(9))
    assert admitted(gates(history=of_one))
    assert closed(gates(history=(*failures(50, 40, 30, 20), *of_one)))[0] == "breaker"


@pytest.mark.parametrize(
    ("after", "pause"),
    [
        ((), 0),
        ((3000.0,), 0),
        ((1700.0,), 1800),
        ((3100.0, 1500.0), 3600),
        ((9000.0, 7000.0, 3500.0), 7200),
    ],
)
def test_each_failure_of_the_one_that_tries_doubles_the_pause(after: tuple[float, ...], pause: float) -> None:
    opened = failures(10_400, 10_300, 10_200, 10_100, 10_000)
    asked = gates(history=(*opened, *failures(*after)))
    if pause:
        assert f"the next is tried {pause:.0f} s after that" in closed(asked)[1]
    else:
        assert admitted(asked)


def test_one_migration_tries_and_the_others_wait_for_it() -> None:
    opened = failures(1400, 1300, 1200, 1100, 1000)
    asked = gates(history=opened)
    parts = (*PARTS, host("n0"), host("n1"), vm("c", "n0"))
    assert admitted(asked, *parts)
    trying = intent(ACCEPTED, 5, "c", None, source="n0", target="n1")
    reason = "migrations failed here of late, and the one that tries whether they do still is under way"
    assert closed(gates(history=opened, under_way=[trying]), *parts) == ("breaker", reason)
    before = intent(ACCEPTED, 1300, "c", None, source="n0", target="n1")
    assert admitted(gates(history=opened, under_way=[before]), *parts)


def test_a_success_closes_it() -> None:
    opened = failures(1400, 1300, 1200, 1100, 1000)
    closed_again = (*opened, intent(DONE, 50, "x"))
    assert admitted(gates(history=(*closed_again, *failures(40, 30, 20, 10))))
    assert closed(gates(history=(*closed_again, *failures(45, 40, 30, 20, 10))))[0] == "breaker"


def test_what_began_before_it_opened_says_nothing_new() -> None:
    opened = failures(140, 130, 120, 110, 100)
    late = intent(FAILED, 10, "w", updated=500.0)
    assert "tried 900 s after that" in closed(gates(history=(*opened, late)))[1]
    late_success = intent(DONE, 10, "w", updated=500.0)
    assert "tried 900 s after that" in closed(gates(history=(*opened, late_success)))[1]


@pytest.mark.parametrize("where", [CLUSTER, ""])
def test_a_person_closes_it(where: str) -> None:
    opened = failures(140, 130, 120, 110, 100)
    assert admitted(gates(history=opened, resumed={where: 99.0}))
    assert closed(gates(history=opened, resumed={"other": 99.0}))[0] == "breaker"
    again = (*opened, *failures(50, 40, 30, 20, 10))
    assert closed(gates(history=again, resumed={where: 99.0}))[0] == "breaker"
