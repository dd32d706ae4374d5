"""Reads a moment as an administrator writes it: 02:13, yesterday 02:13, 2026-01-31 02:13."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple

_CLOCK: Final = r"(\d{1,2}):(\d\d)(?::(\d\d))?"
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FORMS: Final = "write 02:13, yesterday 02:13, monday 02:13, 2026-01-31 02:13 or 2026-01-31T02:13:00+01:00"


class Moment(NamedTuple):
    """A moment in seconds since the epoch, with what is to be said of how it was understood."""

    seconds: float
    note: str = ""


def read(text: str, now: float, zone: tzinfo | None = None) -> Moment:
    """The moment that is meant; a time without a zone is of `zone`, else of this machine's.

    A time of day is today's, or yesterday's where today's is still to come at `now`, in seconds since the
    epoch. Raises `ValueError`.
    """
    here = datetime.fromtimestamp(now, zone).replace(tzinfo=None)
    words = text.strip().lower()
    short = re.fullmatch(rf"(?:([a-z]+) +)?{_CLOCK}", words)
    if short is not None:
        return _local(_day_named(short[1], _of_clock(text, *short.groups()[1:]), here), zone)
    try:
        found = datetime.fromisoformat(text.strip().upper().replace(" ", "T", 1))
    except ValueError:
        raise ValueError(f'"{text}" is no moment: {_FORMS}') from None
    return _local(found, zone) if found.tzinfo is None else Moment(found.timestamp())


def _of_clock(text: str, hour: str, minute: str, second: str | None) -> time:
    try:
        return time(int(hour), int(minute), int(second or 0))
    except ValueError:
        raise ValueError(f'"{text}" is no time of day: {_FORMS}') from None


def _day_named(word: str | None, clock: time, now: datetime) -> datetime:
    """A time of the day that is called so, by the clocks of the zone, which show `now`."""
    if word is None:
        found = datetime.combine(now.date(), clock)
        return found if found <= now else found - timedelta(days=1)
    if word in ("today", "yesterday"):
        return datetime.combine(now.date() - timedelta(days=word == "yesterday"), clock)
    named = [number for number, day in enumerate(_DAYS) if len(word) >= 3 and day.startswith(word)]
    if not named:
        raise ValueError(f'"{word}" is no day: {_FORMS}')
    found = datetime.combine(now.date() - timedelta(days=(now.weekday() - named[0]) % 7), clock)
    return found if found <= now else found - timedelta(days=7)


def _local(found: datetime, zone: tzinfo | None) -> Moment:
    """What clocks of the zone show; they show some times twice a year, and pass over others."""
    folds = (_aware(found.replace(fold=fold), zone) for fold in (0, 1))
    first, second = sorted(folds, key=datetime.timestamp)
    if first.utcoffset() == second.utcoffset():
        return Moment(first.timestamp())
    shown = datetime.fromtimestamp(first.timestamp(), zone)
    if shown.replace(tzinfo=None, fold=0) == found:
        other = second.isoformat(timespec="seconds")
        return Moment(first.timestamp(), f"clocks showed that time twice: write {other} for the second time")
    later = datetime.fromtimestamp(second.timestamp(), zone)
    return Moment(second.timestamp(), f"clocks were put forward over that time: {later:%H:%M:%S} is taken")


def _aware(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
