"""Moments as administrators write them, and what the engine says of hosts that its filters refused."""

import os
import time
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.decisions import EngineSaid, names_one_for_all, said_of_host
from ovirt_placement.answers.decisions.at_time import read_moment
from tests.builders import host

# -- Moments as administrators write them: of today, of the night in which clocks are set.
VIENNA = ZoneInfo("Europe/Vienna")
#: A Wednesday.
NOW = datetime(2026, 11, 25, 9, 30, tzinfo=VIENNA).timestamp()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("02:13", "2026-11-25T02:13:00+01:00"),
        ("2:13", "2026-11-25T02:13:00+01:00"),
        ("22:13:05", "2026-11-24T22:13:05+01:00"),
        ("yesterday 02:13", "2026-11-24T02:13:00+01:00"),
        ("Today 02:13", "2026-11-25T02:13:00+01:00"),
        ("2026-07-01 02:13", "2026-07-01T02:13:00+02:00"),
        ("2026-07-01T02:13:07", "2026-07-01T02:13:07+02:00"),
        ("2026-07-01 02:13:07+00:00", "2026-07-01T02:13:07+00:00"),
        ("2026-07-01t02:13:07z", "2026-07-01T02:13:07+00:00"),
        ("2026-07-01", "2026-07-01T00:00:00+02:00"),
    ],
)
def test_what_is_meant(text: str, meant: str) -> None:
    assert read_moment(text, NOW, VIENNA) == datetime.fromisoformat(meant).timestamp()


@pytest.mark.parametrize("text", ["", "25:00", "02:61", "soon", "monday 02:13", "2026-13-01", "02"])
def test_what_is_none_is_refused_with_how_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match="write 02:13, yesterday 02:13"):
        read_moment(text, NOW, VIENNA)


@pytest.fixture
def vienna_here() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Vienna"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("vienna_here")
def test_this_machines_zone_is_read_as_any_other() -> None:
    for text in ("02:13", "22:13", "2026-10-25 02:13", "2026-03-29 02:13", "2026-07-01 02:13"):
        assert read_moment(text, NOW) == read_moment(text, NOW, VIENNA)


@given(st.integers(0, 86_399), st.integers(1_700_000_000, 1_900_000_000))
def test_a_time_of_day_is_the_last_one_that_has_come(second: int, now: int) -> None:
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    found = read_moment(clock, now, VIENNA)
    shown = datetime.fromtimestamp(found, VIENNA).strftime("%H:%M:%S")
    if shown == clock:  # clocks pass over some times once a year
        # The day in which clocks are put back has 25 hours.
        assert -3600 <= now - found < 25 * 3600
    else:
        assert shown > clock


# -- What the engine says of hosts that its filters refused: it may name one of them for all.
_BEGINS = (
    "Failed to run VM q3: [Cannot run VM. There is no host that satisfies current scheduling constraints."
    " See below for details:"
)
_AFFINITY = (
    "The host {} did not satisfy internal filter VmToHostsAffinityGroups because it did not match positive"
    " affinity rules ."
)
_OTHER = "The host {} did not satisfy internal filter VmAffinityGroups because it matched negative rules ."


def said(*parts: str) -> EngineSaid:
    return EngineSaid("2026-11-28T07:00:00Z", 54, True, ", ".join((_BEGINS, *parts)) + "]")


def test_what_is_said_of_one_is_shown_with_it() -> None:
    event = said(_AFFINITY.format("h1"), _OTHER.format("h2"))
    assert said_of_host([event], host("h2")) == _OTHER.format("h2")
    assert not names_one_for_all(event.sentence)


def test_what_is_said_of_all_under_the_name_of_one_is_shown_with_none() -> None:
    """As an engine 4.5.8 said of six hosts, of which the named one was refused by another filter."""
    event = said(*[_AFFINITY.format("h4")] * 6)
    assert names_one_for_all(event.sentence)
    assert all(said_of_host([event], host(name)) is None for name in ("h1", "h4"))
