"""Dates as searches write them: `1/31/26`, `Jan 31, 2026`, today, yesterday, Monday; in UTC.

The engine reads as much of a text as fits and drops the rest, so a time behind a date counts for nothing, but
for what Java's `Date.parse` reads, which is the whole text. Years of two digits are at most 80 years back.
Source: the engine's `DateUtils` and `BaseConditionFieldAutoCompleter.dealWithDateEnum`.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

_MONTHS = [name.lower() for name in calendar.month_name[1:]]
_WEEKDAYS = [name.lower() for name in calendar.day_name]
_NAMED = re.compile(r"(?:(?P<weekday>[a-z]+), )?(?P<month>[a-z]+) (?P<day>\d+), (?P<year>\d+)", re.IGNORECASE)
_SHORT = re.compile(r"(?P<month>\d+)/(?P<day>\d+)/(?P<year>\d+)")
#: The days back whose names stand for the last day of that name; the two latest go by other words.
_NAMED_DAYS_BACK = range(2, 8)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
#: What stands for any date before and behind those that a database can compare.
TOO_EARLY, TOO_LATE = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
#: A time behind a date, as `Date.parse` reads it.
_TIME = re.compile(
    r"[ ,]*(?:(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}))?)?"
    r" *(?P<half>am|pm)? *(?:utc?|gmt)?",
    re.IGNORECASE,
)
_HALF_DAY_HOURS = 12


def date(text: str, now: datetime) -> datetime | None:
    """Read a date; None for what is none."""
    found = _found(text)
    if found is None:
        return None
    year = int(found["year"])
    return _midnight(found, _full_year(year, now) if len(found["year"]) == len("26") else year)


def moment(text: str, now: datetime) -> datetime | None:
    """Read a date that a time may follow, as Java's `Date.parse` does; None for what it takes for none."""
    found = _found(text)
    time = None if found is None else _TIME.fullmatch(text, found.end())
    if found is None or time is None or (time["half"] and not time["hour"]):
        return None
    year = int(found["year"])
    midnight = _midnight(found, _full_year(year, now, at_most_ahead=19) if year < 100 else year)
    return midnight + timedelta(
        hours=_hour(int(time["hour"] or 0), time["half"]),
        minutes=int(time["minute"] or 0),
        seconds=int(time["second"] or 0),
    )


def _hour(hour: int, half: str | None) -> int:
    if half is None:
        return hour
    return hour % _HALF_DAY_HOURS + _HALF_DAY_HOURS * (half.lower() == "pm")


def is_day(text: str, now: datetime) -> bool:
    return date(text, now) is not None or text.lower() in ("today", "yesterday", *_WEEKDAYS)


def day(text: str, now: datetime) -> datetime:
    """Give the midnight that a day begins with; of the two latest weekdays by name, the beginning of time."""
    found = date(text, now)
    if found is not None:
        return found
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    word = text.lower()
    if word in ("today", "yesterday"):
        return today - timedelta(days=word == "yesterday")
    for back in _NAMED_DAYS_BACK:
        candidate = today - timedelta(days=back)
        if _WEEKDAYS[candidate.weekday()] == word:
            return candidate
    return _NEVER


def _found(text: str) -> re.Match[str] | None:
    found = _NAMED.match(text)
    if found is None:
        return _SHORT.match(text)
    weekday = found["weekday"]
    known = weekday is None or _index(weekday, _WEEKDAYS) is not None
    return found if known and _index(found["month"], _MONTHS) is not None else None


def _index(word: str, names: list[str]) -> int | None:
    """Find a name that is written in full or with its first three letters."""
    return next((index for index, name in enumerate(names) if word.lower() in (name, name[:3])), None)


def _full_year(year: int, now: datetime, at_most_ahead: int = 20) -> int:
    """Give the year that two digits mean, of the hundred that end this many years ahead."""
    latest = now.year + at_most_ahead
    return latest - (latest - year) % 100


def _midnight(found: re.Match[str], year: int) -> datetime:
    """Give a date; months and days beyond the last one count on, as in Java's calendar."""
    named = _index(found["month"], _MONTHS)
    years, months = divmod(int(found["month"]) - 1 if named is None else named, 12)
    try:
        return datetime(year + years, months + 1, 1, tzinfo=UTC) + timedelta(days=int(found["day"]) - 1)
    except (ValueError, OverflowError):
        return TOO_EARLY if year < TOO_LATE.year else TOO_LATE
