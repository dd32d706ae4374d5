"""Dates as searches write them: `1/31/26`, `Jan 31, 2026`, today, yesterday, Monday; in UTC.

The engine reads as much of a text as fits and drops the rest, so a time behind a date counts for nothing.
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
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def date(text: str, now: datetime) -> datetime | None:
    """Read a date; None for what is none."""
    found = _NAMED.match(text)
    if found is not None:
        return _named(found)
    found = _SHORT.match(text)
    if found is None:
        return None
    year = found["year"]
    return _midnight(
        _full_year(int(year), now) if len(year) == 2 else int(year), found["month"], found["day"]
    )


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


def _named(found: re.Match[str]) -> datetime | None:
    month = _index(found["month"], _MONTHS)
    weekday = found["weekday"]
    if month is None or (weekday is not None and _index(weekday, _WEEKDAYS) is None):
        return None
    return _midnight(int(found["year"]), str(month + 1), found["day"])


def _index(word: str, names: list[str]) -> int | None:
    """Find a name that is written in full or with its first three letters."""
    return next((index for index, name in enumerate(names) if word.lower() in (name, name[:3])), None)


def _full_year(year: int, now: datetime) -> int:
    """Give the year that two digits mean: at most 80 years ago, at most 20 ahead."""
    full = now.year // 100 * 100 + year
    if full > now.year + 20:
        return full - 100
    return full + 100 if full <= now.year - 80 else full


def _midnight(year: int, month: str, of_month: str) -> datetime | None:
    """Give a date; months and days beyond the last one count on, as in Java's calendar."""
    years, months = divmod(int(month) - 1, 12)
    try:
        return datetime(year + years, months + 1, 1, tzinfo=UTC) + timedelta(days=int(of_month) - 1)
    except (ValueError, OverflowError):
        return None
