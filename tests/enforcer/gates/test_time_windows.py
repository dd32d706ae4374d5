"""Migrations begin within windows and outside of blackouts, of the clusters that these are for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ovirt_enforcer.gates.admission import Closed
from ovirt_enforcer.gates.gate import HostAction
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_enforcer.windows import Window
from ovirt_placement.store.intents import IntentKind
from tests.builders import CLUSTER, cluster, snapshot

from .judging import PARTS, admitted, closed, gates

NIGHT = Window(start="0 22 * * 1-5", hours=6, time_zone="Europe/Vienna")
BLUE = (*PARTS, cluster(name="blue"))


def at(hour: int, minute: int = 0, day: int = 2, **windows: Any) -> Any:
    """The gates in March 2026, whose second is a Monday, by UTC: Vienna is an hour ahead."""
    settings = EnforcerSettings(mode=Mode.ENFORCE, **windows)
    return gates(settings, now=datetime(2026, 3, day, hour, minute, tzinfo=UTC))


@pytest.mark.parametrize(
    ("hour", "minute", "day", "opens"),
    [
        (20, 59, 2, "2026-03-02 22:00+01:00"),
        (21, 0, 2, None),
        (2, 59, 3, None),
        (3, 0, 3, "2026-03-03 22:00+01:00"),
        (2, 59, 7, None),
        (23, 0, 7, "2026-03-09 22:00+01:00"),
    ],
    ids=["before", "at its start", "at its end", "after", "of Friday", "on Saturday"],
)
def test_migrations_begin_within_a_window(hour: int, minute: int, day: int, opens: str | None) -> None:
    asked = at(hour, minute, day, windows=(NIGHT,))
    if opens is None:
        assert admitted(asked, *BLUE)
    else:
        reason = f"it is outside of the windows; the next one opens at {opens}"
        assert closed(asked, *BLUE) == ("windows", reason)


def test_of_several_windows_one_is_enough() -> None:
    noon = Window(start="0 12 * * *", hours=0.5)
    assert admitted(at(12, 29, windows=(NIGHT, noon)), *BLUE)
    reason = "it is outside of the windows; the next one opens at 2026-03-02 22:00+01:00"
    assert closed(at(12, 30, windows=(noon, NIGHT)), *BLUE) == ("windows", reason)


def test_a_blackout_closes_within_a_window_too() -> None:
    backup = Window(start="30 23 * * *", hours=1, time_zone="Europe/Vienna")
    asked = at(22, 45, windows=(NIGHT,), blackouts=(backup,))
    reason = 'it is within the blackout "30 23 * * *" for 1 h (Europe/Vienna)'
    assert closed(asked, *BLUE) == ("windows", reason)
    assert admitted(at(23, 30, windows=(NIGHT,), blackouts=(backup,)), *BLUE)


#: What brings back a host that is out of service.
BRINGS_BACK = {IntentKind.ACTIVATE_HOST, IntentKind.START_VM}


@pytest.mark.parametrize("kind", IntentKind)
def test_what_is_out_of_service_is_brought_back_at_any_time(kind: IntentKind) -> None:
    action, here = HostAction(kind, "h2", "a"), snapshot(*BLUE)
    assert at(22, windows=(NIGHT,)).admit_action(here, CLUSTER, action).action == action
    upgraded = snapshot(*PARTS, cluster(upgrade_mode=True))
    for gate, asked, state, passes in (
        ("windows", at(12, windows=(NIGHT,)), here, BRINGS_BACK),
        ("cluster_upgrade", gates(), upgraded, BRINGS_BACK | {IntentKind.UPGRADE_HOST}),
    ):
        if kind in passes:
            assert asked.admit_action(state, CLUSTER, action).action == action
        else:
            with pytest.raises(Closed) as caught:
                asked.admit_action(state, CLUSTER, action)
            assert caught.value.gate == gate


@pytest.mark.parametrize(("named", "passes"), [("blue", False), ("cluster1", False), ("red", True)])
def test_windows_and_blackouts_are_of_clusters(named: str, passes: bool) -> None:
    of_some = Window(start="0 22 * * *", hours=1, clusters=(named,))
    always = Window(start="0 0 * * *", hours=24, clusters=(named,))
    for windows in ({"windows": (of_some,)}, {"blackouts": (always,)}):
        asked = at(12, **windows)
        if passes:
            assert admitted(asked, *BLUE)
        else:
            assert closed(asked, *BLUE)[0] == "windows"
