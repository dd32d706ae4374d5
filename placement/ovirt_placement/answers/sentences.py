"""Says a rule's reasons in sentences, and as data: with names next to ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import Named, NamedGroup, named_group, named_host, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.sentences import sentence

#: How many names of a longer list a person reads.
MOST_NAMES = 8


class Unit(Record, frozen=True, omit_defaults=False):
    """Who says something: a policy unit of ours, or one of the engine's own, which it calls internal."""

    name: str
    internal: bool


class Said(Record, frozen=True, omit_defaults=False):
    """A reason as people and programs get it."""

    kind: str
    #: Whether it keeps the VM off the host; else it is a note.
    veto: bool
    group: NamedGroup | None
    vm: Named | None
    host: Named | None
    number: float | None
    unit: str | None
    sentence: str
    #: Whose verdict or remark it is.
    by: tuple[Unit, ...]


def said(reason: Reason, snapshot: Snapshot, rules: Iterable[Rule]) -> Said:
    """A reason with its sentence, and the units of the rules that give it."""
    return Said(
        kind=reason.kind.name,
        veto=reason.kind.veto,
        group=None if reason.group is None else named_group(reason.group, snapshot),
        vm=None if reason.vm is None else named_vm(reason.vm, snapshot),
        host=None if reason.host is None else named_host(reason.host, snapshot),
        number=reason.number,
        unit=reason.unit,
        sentence=sentence(reason, snapshot),
        by=tuple(map(_unit, rules)),
    )


def unit_name(rule: Rule) -> str:
    """Whose it is, by one rule."""
    return unit_names([_unit(rule)])


def unit_names(units: Iterable[Unit]) -> str:
    """Whose it is: a unit of ours by its name alone, one of the engine's own as such."""
    return ", ".join(f"the engine's {unit.name}" if unit.internal else unit.name for unit in units)


def listed(names: Sequence[str], joint: str = ", ", *, whole: bool = False) -> str:
    """Names on a line; unless all are wanted, no more than a person reads."""
    if whole or len(names) <= MOST_NAMES:
        return joint.join(names)
    return f"{joint.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"


def _unit(rule: Rule) -> Unit:
    return Unit(rule.name, not rule.ours)


def utc_text(seconds: float) -> str:
    """A moment in seconds since the epoch, as people read it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def upgrade_text(cluster: Cluster) -> str:
    """Say that the engine marks a cluster as being upgraded, and who began that, where it is known."""
    who = f" ({cluster.upgrade_correlation_id})" if cluster.upgrade_correlation_id else ""
    return f"the cluster is being upgraded{who}"
