"""Times of the day and week, as the configuration gives them: a start in cron's words, and a length."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError
from msgspec import Meta

from ovirt_placement.config import ClusterName

#: Clocks are set back by no more: an earlier start may seem to come after a later one by so much.
_MOST_SET_BACK: Final = timedelta(hours=3)
_CRON_FIELDS: Final = 5


class Window(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Begins whenever the clocks of a zone show what `start` says, and lasts this many hours of real time."""

    #: Minute, hour, day of the month, month, day of the week.
    start: str
    #: Real hours, also when clocks are changed.
    hours: Annotated[float, Meta(gt=0, le=744)]
    #: A name of the tz database.
    time_zone: str = "UTC"
    #: Only these clusters, by name, id or pattern; none: all.
    clusters: tuple[ClusterName, ...] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for what is no expression, begins never, or is no zone."""
        try:
            if len(self.start.split()) != _CRON_FIELDS:
                raise CronSimError(f"it needs {_CRON_FIELDS} fields")
            next(CronSim(self.start, datetime(2024, 1, 1, tzinfo=self.zone)))
        except (CronSimError, StopIteration) as error:
            why = f"{error}".lower() or "it never comes"
            raise ValueError(f'start: "{self.start}" is no time such as "0 22 * * 1-5" ({why})') from None

    @cached_property
    def zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f'time_zone: "{self.time_zone}" is none that this machine knows') from None

    def contains(self, now: datetime) -> bool:
        """Whether it is open at a moment, which has a time zone, be it another one."""
        length = timedelta(hours=self.hours)
        for start in self._starts(now - length):
            # Times of the same zone would be compared, and added to, by what the clocks show.
            elapsed = now.timestamp() - start.timestamp()
            if elapsed < length.total_seconds():
                return elapsed >= 0
        return False

    def next_start(self, now: datetime) -> datetime:
        """When it begins next, in its own zone."""
        return next(at for at in self._starts(now) if at.timestamp() > now.timestamp())

    def _starts(self, around: datetime) -> CronSim:
        """When it begins, in order, since a while before a moment."""
        return CronSim(self.start, (around - _MOST_SET_BACK).astimezone(self.zone))
