"""The simulator's answers: those of its copies of the engine's units."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ovirt_placement.model import Snapshot
from tests.engine.question import Question

_SCHEDULER = "ovirt_simulator.scheduler."


def _asked(question: Question) -> tuple[Snapshot, list[Any], list[Any]]:
    snapshot = question.snapshot
    return (
        snapshot,
        [snapshot.vm_by_id[vm] for vm in question.vms],
        [snapshot.host_by_id[host] for host in question.hosts],
    )


def accepted(name: str) -> Callable[[Question], Any]:
    """The hosts that a filter leaves."""

    def answer(question: Question) -> list[str]:
        refused = getattr(import_module(_SCHEDULER + "filters"), name)(*_asked(question))
        return [host for host in question.hosts if host not in refused]

    return answer


def scores(name: str) -> Callable[[Question], Any]:
    """What a weight says of hosts."""

    def answer(question: Question) -> dict[str, int]:
        return dict(getattr(import_module(_SCHEDULER + "weights"), name)(*_asked(question)))

    return answer
