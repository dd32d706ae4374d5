"""What happened lately: totals, a line a day, and how each cluster developed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from ovirt_placement.answers.document import Columns, Document
from ovirt_placement.model.names import Named, counted
from ovirt_placement.model.record import Record
from ovirt_placement.store.enforcer.observations import HOUR_SECONDS, Sample


# -- What happened in a span of time, made of the samples of its hours: what histories and trends consist of.
class Activity(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Counts of a span of time, and the worst that was seen in it; null where it was not observed."""

    #: Plans that were made for the first time.
    plans: int
    #: Migrations that ended: done, and failed or refused by the engine.
    migrations: int
    failed: int
    #: The most hard and soft rules that were violated at once, in all clusters together.
    hard: int | None
    soft: int | None
    #: By how many failing hosts the HA reservation fell short at the most; 0 where it was satisfied.
    ha_failures_not_survived: int | None
    #: The most highly available VMs that could not have been restarted after a failure.
    vms_cannot_restart: int | None


def activity(samples: Iterable[Sample]) -> Activity:
    """Put hours together, of one cluster or of several."""
    hours: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        hours[sample.hour].append(sample)
    found = [sample for hour in hours.values() for sample in hour]
    return Activity(
        plans=sum(one.plans for one in found),
        migrations=sum(one.done for one in found),
        failed=sum(one.failed for one in found),
        hard=_most(_sum(one.hard for one in hour) for hour in hours.values()),
        soft=_most(_sum(one.soft for one in hour) for hour in hours.values()),
        ha_failures_not_survived=_most(map(_not_survived, found)),
        vms_cannot_restart=_most(one.ha_not_restarted for one in found),
    )


def named_cluster_of(cluster: str, samples: Iterable[Sample]) -> Named:
    """A cluster, by the name that was written down last; by its id where there is none."""
    names = [one.cluster_name for one in samples if one.cluster == cluster and one.cluster_name]
    return Named(cluster, names[-1] if names else cluster)


def _not_survived(sample: Sample) -> int | None:
    known = sample.ha_failures is not None and sample.ha_survived is not None
    return max(0, (sample.ha_failures or 0) - (sample.ha_survived or 0)) if known else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


# -- What happened lately: totals, and a line a day.
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
    of_days = {first + timedelta(days=day): list[Sample]() for day in range((last - first).days + 1)}
    for sample in wanted:
        at = _local(sample.hour * HOUR_SECONDS).date()
        of_days[min(max(at, first), last)].append(sample)
    return HistoryDocument(
        since=_local(since).isoformat(timespec="seconds"),
        cluster=cluster,
        totals=activity(wanted),
        days=tuple(Day(day.isoformat(), activity(found)) for day, found in of_days.items()),
    )


# -- in words
def history_lines(answer: HistoryDocument) -> Iterator[str]:
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


#: Of a day; what is not known is a dash.
DAY_COLUMNS: Columns = {
    "day": lambda one: one.day,
    "plans": lambda one: one.activity.plans,
    "migrations": lambda one: one.activity.migrations,
    "failed": lambda one: one.activity.failed,
    "hard": lambda one: _shown(one.activity.hard),
    "soft": lambda one: _shown(one.activity.soft),
    "cannot restart": lambda one: _shown(one.activity.vms_cannot_restart),
}


def _lost(found: Activity) -> bool:
    return bool(found.vms_cannot_restart or found.ha_failures_not_survived)


def _shown(value: int | None) -> str:
    return "-" if value is None else str(value)


def _local(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()


# -- How violations, migrations and HA reservations of each cluster developed, drawn or as data.
#: What fits into 80 columns with its titles.
MOST_POINTS: Final = 48
#: From nothing at all to the highest value; the plain ones for terminals without the others.
_BARS: Final = "▁▂▃▄▅▆▇█"
_PLAIN_BARS: Final = "_.:-=+*#"


class TrendPoint(Record, frozen=True, omit_defaults=False):
    """A span of time."""

    #: When it begins (ISO 8601).
    start: str
    activity: Activity


class ClusterTrend(Record, frozen=True, omit_defaults=False):
    """A cluster over the time."""

    cluster: Named
    #: The oldest first, without gaps.
    points: tuple[TrendPoint, ...]


class TrendDocument(Document, frozen=True, kw_only=True, tag="trend"):
    """How each cluster developed."""

    #: How much time a point stands for.
    point_hours: int
    clusters: tuple[ClusterTrend, ...]


def trend(samples: Sequence[Sample], *, cluster: Named | None, since: float, until: float) -> TrendDocument:
    """From one moment to another, in seconds since the epoch; of one cluster or of all."""
    first, last = int(since // HOUR_SECONDS), int(until // HOUR_SECONDS)
    hours = _point_hours(last + 1 - first)
    starts = range(last + 1 - hours * -(-(last + 1 - first) // hours), last + 1, hours)
    wanted = [one for one in samples if cluster is None or one.cluster == cluster.id]
    return TrendDocument(
        point_hours=hours,
        clusters=tuple(
            ClusterTrend(named_cluster_of(one, wanted), tuple(_points(starts, wanted, one)))
            for one in sorted({sample.cluster for sample in wanted})
        ),
    )


def _points(starts: range, samples: Iterable[Sample], cluster: str) -> Iterator[TrendPoint]:
    of_points: list[list[Sample]] = [[] for _ in starts]
    for sample in samples:
        if sample.cluster == cluster:
            # The clock may have been set back since.
            of_points[min(max(0, (sample.hour - starts[0]) // starts.step), len(starts) - 1)].append(sample)
    for start, found in zip(starts, of_points, strict=True):
        yield TrendPoint(_local(start * HOUR_SECONDS).isoformat(timespec="minutes"), activity(found))


def _point_hours(hours: int) -> int:
    """The shortest span of which there are not too many, of those that people count in."""
    days = -(-hours // (24 * MOST_POINTS))
    return next((one for one in (1, 2, 3, 6, 12, 24) if hours <= one * MOST_POINTS), 24 * days)


# -- in words
#: What is drawn, and whether it is counted, or the worst of a span.
_DRAWN: Final[tuple[tuple[str, Callable[[Activity], int | None]], ...]] = (
    ("hard violations", lambda one: one.hard),
    ("soft violations", lambda one: one.soft),
    ("migrations", lambda one: one.migrations),
    ("failed", lambda one: one.failed),
    ("HA: not survived", lambda one: one.ha_failures_not_survived),
    ("HA: cannot restart", lambda one: one.vms_cannot_restart),
)


def trend_lines(answer: TrendDocument, *, plain: bool = False) -> Iterator[str]:
    """A row of bars a value, each to its own scale; `plain` draws with ASCII alone."""
    if not answer.clusters:
        yield "Nothing is known of this time: no enforcer led."
    else:
        points, hours = answer.clusters[0].points, answer.point_hours
        first, last = (datetime.fromisoformat(points[at].start) for at in (0, -1))
        span = counted(hours // 24, "day") if hours % 24 == 0 else counted(hours, "hour")
        yield f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}, {span} a column"
    for trend in answer.clusters:
        yield f"cluster {trend.cluster.name}:"
        for title, value_of in _DRAWN:
            values = [value_of(point.activity) for point in trend.points]
            if (highest := _most(values)) is not None:
                bars = _bars(values, highest, _PLAIN_BARS if plain else _BARS)
                yield f"  {title:<18} {bars}  max {highest}"
            else:
                yield f"  {title:<18} not known"


def _bars(values: Iterable[int | None], highest: int, bars: str) -> str:
    """Nothing is the lowest bar, the least of something the second; what is not known is a space."""
    top = len(bars) - 1
    at = (None if value is None else -(-value * top // highest) if highest else 0 for value in values)
    return "".join(" " if place is None else bars[place] for place in at)
