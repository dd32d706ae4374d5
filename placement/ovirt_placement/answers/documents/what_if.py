"""What would come of a change, as data."""

from __future__ import annotations

from ovirt_placement.answers.documents.document import Document
from ovirt_placement.answers.names import Named
from ovirt_placement.rules.record import Record


class ForeseenRule(Record, frozen=True, omit_defaults=False):
    """A rule that the change breaks or repairs, with the running VMs that stand wrong."""

    kind: str
    asks: str
    hard: bool
    groups: tuple[Named, ...]
    vms: tuple[Named, ...]


class ForeseenMove(Record, frozen=True, omit_defaults=False):
    """A migration that the change would cost."""

    vms: tuple[Named, ...]
    sources: tuple[Named, ...]
    to: Named
    #: Places in the list, from 0, of the moves that must have ended before.
    after: tuple[int, ...]


class ForeseenFailures(Record, frozen=True, omit_defaults=False):
    """How many hosts may fail at once, whichever they are."""

    count: int
    #: Whether one more may surely not.
    exact: bool


class ForeseenCluster(Record, frozen=True, omit_defaults=False, kw_only=True):
    """What becomes of a cluster."""

    cluster: Named
    broken: tuple[ForeseenRule, ...]
    repaired: tuple[ForeseenRule, ...]
    #: Rules that the migrations do not repair.
    stays_broken: tuple[ForeseenRule, ...]
    moves: tuple[ForeseenMove, ...]
    #: Whether fewer migrations surely do not repair as much.
    proven: bool
    #: Now, with the change, and once the migrations are made; null without highly available VMs.
    failures_now: ForeseenFailures | None
    failures_changed: ForeseenFailures | None
    failures_settled: ForeseenFailures | None


class ForeseenStart(Record, frozen=True, omit_defaults=False):
    """A VM that would start."""

    vm: Named
    #: Where; null if every host refuses it.
    host: Named | None
    #: Where it ran before.
    former: Named | None
    refused_by: tuple[str, ...]


class WhatIfDocument(Document, frozen=True, kw_only=True, tag="what_if"):
    """What would come of a change, before it is made."""

    clusters: tuple[ForeseenCluster, ...]
    #: What speaks against it or is odd about it, as sentences.
    conflicts: tuple[str, ...]
    #: In their order, where hosts fail or VMs start.
    starts: tuple[ForeseenStart, ...]
    #: VMs that stop with their host, and are not highly available.
    stopped: tuple[Named, ...]
    #: Conditions of `--fail-if` that hold.
    fails: tuple[str, ...]
