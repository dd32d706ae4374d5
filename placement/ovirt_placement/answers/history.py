"""What happened lately: totals, and a line a day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta

from ovirt_placement.answers.activity import Activity, activity
from ovirt_placement.answers.document import Document
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.samples import HOUR_SECONDS, Sample

HEADERS = ("day", "plans", "migrations", "failed", "hard", "soft", "cannot restart")


class Day(Record, frozen=True, omit_defaults=False):
    """A day, by the local time of the machine that was asked."""

    #: As 2026-01-31.
    day: str
    activity: Activity


class HistoryDocument(Document, frozen=True, kw_only=True, tag="history"):
    """What happened since some time, in all clusters together or in one."""

    #: ISO 8601.
    since: str
    #: null if all clusters were asked about.
    cluster: Named | None
    totals: Activity
    #: All days since then, the oldest first.
    days: tuple[Day, ...]


def history(
    samples: Iterable[Sample], *, cluster: Named | None, since: float, until: float
) -> HistoryDocument:
    """The days from one moment to another, in seconds since the epoch; of a cluster or of all."""
    wanted = [one for one in samples if cluster is None or one.cluster == cluster.id]
    first, last = _local(since).date(), _local(until).date()
    of_days: dict[date, list[Sample]] = {}
    day = first
    while day <= last:
        of_days[day] = []
        day += timedelta(days=1)
    for one in wanted:
        at = _local(one.hour * HOUR_SECONDS).date()
        of_days[min(max(at, first), last)].append(one)
    return HistoryDocument(
        since=_local(since).isoformat(timespec="seconds"),
        cluster=cluster,
        totals=activity(wanted),
        days=tuple(Day(day.isoformat(), activity(found)) for day, found in of_days.items()),
    )


# -- in words


def lines(answer: HistoryDocument) -> Iterator[str]:
    """The totals; the days stand in a table of their own."""
    where = "all clusters" if answer.cluster is None else f"cluster {answer.cluster.name}"
    total = answer.totals
    yield f"{where}, {answer.days[0].day} to {answer.days[-1].day}:"
    plans, migrations = counted(total.plans, "plan"), counted(total.migrations, "migration")
    yield f"  {plans}, {migrations} done, {total.failed} failed"
    if total.hard is None or total.soft is None:
        yield "  violations: not known, no enforcer led"
    else:
        yield f"  violations: at most {total.hard} hard and {total.soft} soft at once"
    if total.vms_cannot_restart is None:
        yield "  HA reservation: not known (not enabled, or not judged)"
    elif _lost(total):
        bad = [one for one in answer.days if _lost(one.activity)]
        vms = counted(total.vms_cannot_restart, "VM")
        yield f"  HA reservation: not satisfied on {counted(len(bad), 'day')}; at most {vms} cannot restart"
    else:
        yield "  HA reservation: satisfied whenever it was judged"


def rows(answer: HistoryDocument) -> Sequence[Sequence[str]]:
    """A row a day, the latest last; what is not known is a dash."""
    return [
        (
            one.day,
            *map(_shown, (one.activity.plans, one.activity.migrations, one.activity.failed)),
            *map(_shown, (one.activity.hard, one.activity.soft, one.activity.vms_cannot_restart)),
        )
        for one in answer.days
    ]


def _lost(found: Activity) -> bool:
    return bool(found.vms_cannot_restart or found.ha_failures_not_survived)


def _shown(value: int | None) -> str:
    return "-" if value is None else str(value)


def _local(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()
