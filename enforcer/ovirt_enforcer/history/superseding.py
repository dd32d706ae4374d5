"""Which recorded plans another one took the place of, and which of these are worth a line of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ovirt_enforcer.history.selecting import steps
from ovirt_placement.store.history import PlanRecord


@dataclass(frozen=True, slots=True)
class FoldedPlans:
    """Plans of a cluster, one after the other, none of which has had a migration before the next came."""

    plans: tuple[PlanRecord, ...]
    #: The plan that took the place of the last.
    superseded_by: str

    @property
    def updated(self) -> float:
        return self.plans[-1].updated


def superseded(records: Iterable[PlanRecord]) -> Mapping[str, str]:
    """Of each plan that was not carried out to its end, the id of the one made next in its cluster."""
    found: dict[str, str] = {}
    latest: dict[str, PlanRecord] = {}
    for record in sorted(records, key=lambda one: (one.updated, one.id)):
        before = latest.get(record.cluster)
        if before is not None and not _carried_out(before):
            found[before.id] = record.id
        latest[record.cluster] = record
    return found


def folded(records: Sequence[PlanRecord], replaced: Mapping[str, str]) -> Iterator[PlanRecord | FoldedPlans]:
    """Put together the superseded plans that came to nothing; the others stay, the latest at the end."""
    parts: list[PlanRecord | FoldedPlans] = []
    for _, of_cluster in groupby(sorted(records, key=lambda one: one.cluster), key=lambda one: one.cluster):
        for idle, some in groupby(of_cluster, key=lambda one: one.id in replaced and not one.migrations):
            run = tuple(some)
            parts += [FoldedPlans(run, replaced[run[-1].id])] if idle else run
    return iter(sorted(parts, key=lambda one: one.updated))


def _carried_out(record: PlanRecord) -> bool:
    """Whether every step has had a migration."""
    return {one.step for one in record.migrations} >= set(range(1, len(steps(record)) + 1))
