"""How violations, migrations and HA reservations of each cluster developed, drawn or as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from ovirt_placement.answers.activity import Activity, activity, named_cluster_of
from ovirt_placement.answers.document import Document
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.samples import HOUR_SECONDS, Sample

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
            ClusterTrend(named_cluster_of(one, wanted), tuple(_points(starts, _of(one, wanted))))
            for one in sorted({sample.cluster for sample in wanted})
        ),
    )


def _of(cluster: str, samples: Iterable[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.cluster == cluster]


def _points(starts: range, samples: Iterable[Sample]) -> Iterator[TrendPoint]:
    of_points: list[list[Sample]] = [[] for _ in starts]
    for one in samples:
        of_points[max(0, (one.hour - starts[0]) // starts.step)].append(one)
    for start, found in zip(starts, of_points, strict=True):
        began = datetime.fromtimestamp(start * HOUR_SECONDS).astimezone()
        yield TrendPoint(began.isoformat(timespec="minutes"), activity(found))


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


def lines(answer: TrendDocument, *, plain: bool = False) -> Iterator[str]:
    """A row of bars a value, each to its own scale; `plain` draws with ASCII alone."""
    if not answer.clusters:
        yield "Nothing is known of this time: no enforcer led."
    else:
        points = answer.clusters[0].points
        first, last = (datetime.fromisoformat(points[at].start) for at in (0, -1))
        yield f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}, {_span(answer.point_hours)} a column"
    for one in answer.clusters:
        yield f"cluster {one.cluster.name}:"
        for title, value_of in _DRAWN:
            values = [value_of(point.activity) for point in one.points]
            known = [value for value in values if value is not None]
            if known:
                bars = _bars(values, max(known), _PLAIN_BARS if plain else _BARS)
                yield f"  {title:<18} {bars}  max {max(known)}"
            else:
                yield f"  {title:<18} not known"


def _bars(values: Sequence[int | None], highest: int, bars: str) -> str:
    """Nothing is the lowest bar, the least of something the second; what is not known is a space."""

    def bar(value: int | None) -> str:
        if value is None:
            return " "
        return bars[-(-value * (len(bars) - 1) // highest) if highest else 0]

    return "".join(map(bar, values))


def _span(hours: int) -> str:
    number, noun = (hours // 24, "day") if hours % 24 == 0 else (hours, "hour")
    return counted(number, noun)
