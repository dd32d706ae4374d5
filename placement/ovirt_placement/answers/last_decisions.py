"""What the scheduler proxy answered last about a VM, from its record of decisions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ovirt_placement.answers.decisions.past import PastDecision, past
from ovirt_placement.answers.decisions.record import BALANCE, FILTERS, WEIGHTS, LoggedDecision, about
from ovirt_placement.answers.document import Document
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named


class LastDecisionsDocument(Document, frozen=True, kw_only=True, tag="last_decisions"):
    """What the scheduler proxy answered last about a VM."""

    vm: Named
    decisions: tuple[PastDecision, ...]


def last_decisions(
    snapshot: Snapshot, vm: Vm, record: Path, only: Host | None = None, number: int = 1
) -> LastDecisionsDocument:
    """What came of the last times that the engine asked for a host: of one, or of all it asked about.

    Of the last one the last answer of each method, of more also what lies between them, the oldest first.
    Raises `NoRecord` if the record cannot be read.
    """
    found = list(about(vm.id, record))
    chosen = _last(found) if number == 1 else _lately(found, number)
    return LastDecisionsDocument(
        vm=Named(vm.id, vm.name), decisions=tuple(past(one, snapshot, only) for one in chosen)
    )


def _last(found: Iterable[LoggedDecision]) -> list[LoggedDecision]:
    """Weights that are older than the last filters are of another decision, and left out."""
    last: dict[str, LoggedDecision] = {}
    for decision in found:
        last.pop(decision.method, None)
        if decision.method == FILTERS:
            last.pop(WEIGHTS, None)
        last[decision.method] = decision
    return list(last.values())


def _lately(found: list[LoggedDecision], number: int) -> list[LoggedDecision]:
    begins = [at for at, one in enumerate(found) if one.method in (FILTERS, BALANCE)]
    return found[begins[-number] :] if len(begins) >= number else found
