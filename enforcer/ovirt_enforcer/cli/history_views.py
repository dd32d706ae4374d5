"""Shows what samples say of the past: a line a day, or how each cluster developed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TypeVar

from ovirt_placement import config, inventory
from ovirt_placement.answers import history, trend
from ovirt_placement.answers.activity import named_cluster_of
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.finding import find
from ovirt_placement.cli.question import PATIENCE_SECONDS, show, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.model.names import Named
from ovirt_placement.store.samples import KEPT_SECONDS, Sample, SampleStore

_DAY_SECONDS = 24 * 3600.0
#: Nobody said how far back: a week by the day, and a month drawn.
_DAYS_SECONDS = 7 * _DAY_SECONDS
_TREND_SECONDS = 30 * _DAY_SECONDS

_Answer = TypeVar("_Answer", bound=Document)


def show_days(args: argparse.Namespace) -> int:
    """Print totals and a line a day."""
    answer = _answer(args, _DAYS_SECONDS, history.history)
    if args.json:
        show_json(answer)
        return 0
    for line in history.lines(answer):
        print(line)
    show(history.rows(answer), history.HEADERS)
    return 0


def show_trend(args: argparse.Namespace) -> int:
    """Print how clusters developed."""
    answer = _answer(args, _TREND_SECONDS, trend.trend)
    if args.json:
        show_json(answer)
        return 0
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    for line in trend.lines(answer, plain=encoding != "utf8"):
        print(line)
    return 0


def _answer(args: argparse.Namespace, usual_seconds: float, answer: Callable[..., _Answer]) -> _Answer:
    seconds = min(args.since or usual_seconds, KEPT_SECONDS)
    with opened(SampleStore, args, create=False) as store:
        until, samples = store.samples(since_seconds=seconds)
    cluster = _cluster(args, samples)
    return answer(samples, cluster=cluster, since=until - seconds, until=until)


def _cluster(args: argparse.Namespace, samples: tuple[Sample, ...]) -> Named | None:
    """The cluster asked about: of the history, else of the engine, else `UserError` with the nearest name."""
    if args.cluster is None:
        return None
    known = {one.cluster: named_cluster_of(one.cluster, samples) for one in samples}
    named = [one for one in known.values() if args.cluster in (one.id, one.name)]
    if len(named) == 1:
        return named[0]
    snapshot = inventory.snapshot(config=config.load(args.config), deadline=PATIENCE_SECONDS)
    found = find(args.cluster, "cluster", snapshot.clusters)
    return Named(found.id, found.name)
