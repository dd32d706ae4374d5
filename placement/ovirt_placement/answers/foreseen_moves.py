"""A migration that a change would cost: as data and as a line."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.answers.plans.records import step_record
from ovirt_placement.answers.plans.text import after_text, migration_text
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, named_host, named_vm, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.planning.plan import Step


class ForeseenMove(Record, frozen=True, omit_defaults=False):
    """A migration that the change would cost."""

    vms: tuple[Named, ...]
    sources: tuple[Named, ...]
    to: Named
    #: What it is for, as a sentence.
    reason: str
    #: Places in the list, from 0, of the moves that must have ended before.
    after: tuple[int, ...]
    #: Whether the engine is asked to move all VMs of the positive group with the first one.
    closure: bool


class MovedByEngine(Record, frozen=True, omit_defaults=False):
    """The hosted engine, which is moved when its host is deactivated; where it goes is not for sure."""

    vm: Named
    expected: Named


def move_record(step: Step, snapshot: Snapshot) -> ForeseenMove:
    """A step of a plan, with names."""
    planned = step_record(step, snapshot)
    return ForeseenMove(
        vms=named_vms(step.vms, snapshot),
        sources=tuple(vm.from_ for vm in planned.vms),
        to=planned.to,
        reason=planned.reason,
        after=planned.after,
        closure=planned.closure,
    )


def move_text(move: ForeseenMove) -> str:
    """Which VMs go where, what for, and which moves they wait for."""
    pairs = ((vm.name, source.name) for vm, source in zip(move.vms, move.sources, strict=True))
    return migration_text(pairs, move.to.name, move.reason, closure=move.closure) + after_text(move.after)


def moved_by_engine(expected: Iterable[tuple[str, str]], snapshot: Snapshot) -> tuple[MovedByEngine, ...]:
    """VMs, each with the host that it is expected on, with names."""
    return tuple(MovedByEngine(named_vm(vm, snapshot), named_host(host, snapshot)) for vm, host in expected)


def moved_by_engine_text(moved: MovedByEngine) -> str:
    return f"{moved.vm.name} is moved by the engine itself, probably to {moved.expected.name}"


def migrations(count: int) -> str:
    """A number of migrations, in words."""
    return f"{count} migration{'s' * (count != 1)}"
