"""A mistake in the enforcer's section is reported in one line that names the key."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.settings import (
    EnforcerSettings,
    HaWatchSettings,
    MaintenanceSettings,
    Mode,
    Window,
    recorded_settings,
)
from ovirt_placement import config
from ovirt_service.errors import UserError

WORDS = "one of observe, approve, enforce"
WINDOW = "[[enforcer.windows]]\nstart = "
NIGHT = f'{WINDOW}"0 22 * * *"\n'
NO_TIME = 'is no time such as "0 22 * * 1-5"'
NO_ZONE = "is none that this machine knows"


def read(folder: Path, text: str) -> EnforcerSettings:
    file = folder / "placement.toml"
    file.write_text(f"[enforcer]\n{text}\n", "utf-8")
    return config.load(file, {}).section("enforcer", EnforcerSettings)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('mode = "enforced"', f'mode: cannot be "enforced"; {WORDS}; did you mean "enforce"?'),
        (
            'clusters = { a = "observed" }',
            f'clusters[...]: cannot be "observed"; {WORDS}; did you mean "observe"?',
        ),
        ('groups = { a = "off" }', f'groups[...]: cannot be "off"; {WORDS}'),
        ('exclude_vms = "a"', "exclude_vms: expected a list, not text"),
        ("migrations_at_once = 0", "migrations_at_once: expected a whole number >= 1"),
        ("lease_seconds = inf", "lease_seconds: expected a number <= 1000000.0"),
        ("hold_cycles = 0", "hold_cycles: expected a whole number >= 1"),
        ("cooldown_after_success_seconds = -1", "cooldown_after_success_seconds: expected a number >= 0.0"),
        (f'{WINDOW}"0 22 * *"\nhours = 1', f'windows[0]: start: "0 22 * *" {NO_TIME} (it needs 5 fields)'),
        (f'{WINDOW}"0 24 * * *"\nhours = 1', f'windows[0]: start: "0 24 * * *" {NO_TIME} (bad hour)'),
        (
            '[[enforcer.blackouts]]\nstart = "0 22 30 2 *"\nhours = 1',
            f'blackouts[0]: start: "0 22 30 2 *" {NO_TIME} (bad day-of-month)',
        ),
        (f'{NIGHT}hours = 1\ntime_zone = "Vienna"', f'windows[0]: time_zone: "Vienna" {NO_ZONE}'),
        (f'{NIGHT}hours = 1\ntime_zone = "../passwd"', f'windows[0]: time_zone: "../passwd" {NO_ZONE}'),
        (NIGHT, "windows[0].hours: is missing"),
        (f"{NIGHT}hours = 0", "windows[0].hours: expected a number > 0.0"),
        (f"{NIGHT}hour = 1", 'windows[0].hour: unknown key; did you mean "hours"?'),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/placement.toml: [enforcer] {complaint}"


@pytest.mark.parametrize("tag", ["a b", "a=b", "a or id=*", 'a"', "ö"])
def test_a_tag_is_nothing_that_a_search_takes_for_more(tmp_path: Path, tag: str) -> None:
    with pytest.raises(UserError, match="exclude_tag: expected text"):
        read(tmp_path, f"exclude_tag = '{tag}'")


def test_tables_name_clusters_groups_and_windows(tmp_path: Path) -> None:
    text = """
mode = "enforce"
[enforcer.clusters]
"*" = "observe"
"test lab" = "enforce"
[enforcer.groups]
db-apart = "approve"
[[enforcer.windows]]
start = "0 22 * * 1-5"
hours = 6
time_zone = "Europe/Vienna"
clusters = ["production"]
[[enforcer.blackouts]]
start = "0 6 1 * *"
hours = 12.5
"""
    night = Window(start="0 22 * * 1-5", hours=6, time_zone="Europe/Vienna", clusters=("production",))
    assert read(tmp_path, text) == EnforcerSettings(
        mode=Mode.ENFORCE,
        clusters={"*": Mode.OBSERVE, "test lab": Mode.ENFORCE},
        groups={"db-apart": Mode.APPROVE},
        windows=(night,),
        blackouts=(Window(start="0 6 1 * *", hours=12.5),),
    )


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
    assert (window.seconds_left(now) > 0) is within
    assert (window.seconds_left(now.astimezone(UTC)) > 0) is within
    assert (window.seconds_left(now.astimezone(ZoneInfo("Asia/Kolkata"))) > 0) is within


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
    assert (window.seconds_left(now) > 0) is began
    opens = window.next_start(now)
    assert opens > now
    assert window.seconds_left(opens) > 0


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


def test_settings_are_flat_and_what_may_hold_a_password_is_not_among_them() -> None:
    settings = EnforcerSettings(
        clusters={"blue": Mode.OBSERVE},
        ha=HaWatchSettings(repair=True),
        maintenance=MaintenanceSettings(command="tool --password secret"),
    )
    found = recorded_settings(settings)
    assert {"mode", "clusters.blue", "ha.repair", "ha.hold_seconds", "windows"} <= set(found)
    assert "secret" not in str(found)
    assert not any(name.startswith(("notifications", "maintenance")) for name in found)
