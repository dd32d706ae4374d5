"""Windows open when the clocks of their zone show it, in the nights as well in which clocks are set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.windows import Window

VIENNA = "Europe/Vienna"
#: Zones that set their clocks by an hour, by half of one, never, and at midnight.
ZONES = (VIENNA, "Australia/Lord_Howe", "Asia/Kolkata", "America/Havana", "UTC")
MINUTE = timedelta(minutes=1)


def vienna(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(VIENNA), fold=fold)


@pytest.mark.parametrize(
    ("start", "hours", "now", "within"),
    [
        # In the night to 2026-03-29, 02:00 is followed by 03:00; a start in between is at 03:00.
        ("0 22 * * *", 6, vienna("2026-03-29 04:59"), True),
        ("0 22 * * *", 6, vienna("2026-03-29 05:00"), False),
        ("30 2 * * *", 1, vienna("2026-03-29 01:59"), False),
        ("30 2 * * *", 1, vienna("2026-03-29 03:00"), True),
        ("30 2 * * *", 1, vienna("2026-03-29 03:59"), True),
        ("30 2 * * *", 1, vienna("2026-03-29 04:00"), False),
        # In the night to 2026-10-25, 03:00 is followed by 02:00; a start in between is the first of both.
        ("0 22 * * *", 6, vienna("2026-10-25 02:59", fold=1), True),
        ("0 22 * * *", 6, vienna("2026-10-25 03:00"), False),
        ("30 2 * * *", 1, vienna("2026-10-25 02:29"), False),
        ("30 2 * * *", 1, vienna("2026-10-25 02:30"), True),
        ("30 2 * * *", 1, vienna("2026-10-25 02:29", fold=1), True),
        ("30 2 * * *", 1, vienna("2026-10-25 02:30", fold=1), False),
    ],
)
def test_the_nights_in_which_clocks_are_set(start: str, hours: float, now: datetime, within: bool) -> None:
    window = Window(start=start, hours=hours, time_zone=VIENNA)
    assert window.contains(now) is within
    assert window.contains(now.astimezone(UTC)) is within
    assert window.contains(now.astimezone(ZoneInfo("Asia/Kolkata"))) is within


@given(
    zone=st.sampled_from(ZONES),
    hour=st.integers(0, 23),
    minute=st.sampled_from((0, 15, 30)),
    weekdays=st.sets(st.integers(0, 6), min_size=1),
    minutes=st.integers(1, 60 * 30),
    now=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(lambda at: at.replace(tzinfo=UTC)),
)
def test_it_is_open_for_its_length_after_each_time_that_the_clocks_show_its_start(
    zone: str, hour: int, minute: int, weekdays: set[int], minutes: int, now: datetime
) -> None:
    days = ",".join(str(day) for day in sorted(weekdays))
    window = Window(start=f"{minute} {hour} * * {days}", hours=minutes / 60, time_zone=zone)
    began = begins_within(now, minutes, zone, hour, minute, weekdays)
    assert window.contains(now) is began
    opens = window.next_start(now)
    assert opens > now
    assert window.contains(opens)


def begins_within(now: datetime, minutes: int, zone: str, hour: int, minute: int, weekdays: set[int]) -> bool:
    """Whether it begins within this many minutes up to now: looked for day by day, by what clocks show."""
    length = timedelta(minutes=minutes)
    first = now.astimezone(ZoneInfo(zone)).date() - timedelta(days=3)
    for day in (first + timedelta(days=more) for more in range(6)):
        if day.isoweekday() % 7 not in weekdays:
            continue
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZoneInfo(zone))
        while at.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) != at.replace(tzinfo=None):
            at += MINUTE
        if timedelta() <= now - at.astimezone(UTC) < length:
            return True
    return False
