"""Why hosts were dropped, from what units wrote into the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ovirt_placement.answers.decisions.record import LoggedDecision
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, group_name, host_name, vm_name
from ovirt_placement.model.record import Record
from ovirt_placement.units.recorded_reasons import RecordedReason, RecordedReasons


class PastReason(Record, frozen=True, omit_defaults=False):
    """Why a unit dropped a host."""

    unit: str
    #: Which reason it is, for programs; empty where the unit recorded none.
    kind: str
    #: The affinity group, or legacy label, and the VM that it is about.
    group: Named | None
    vm: Named | None
    sentence: str


class _Fields(NamedTuple):
    kind: int
    group: str | None
    vm: str | None
    host: str | None
    number: float | None
    unit: str | None
    status: str | None


def reasons_of(decision: LoggedDecision, snapshot: Snapshot) -> Mapping[str, tuple[PastReason, ...]]:
    """By host, why it was dropped; `snapshot` has the names that the record lacks.

    A unit that recorded no reason is named alone.
    """
    known = {unit: _read(said) for unit, said in decision.reasons.items()}
    return {
        host: tuple(reason for unit in units for reason in _of_unit(unit, host, known, decision, snapshot))
        for host, units in decision.fallen.items()
    }


def _of_unit(
    unit: str,
    host: str,
    known: Mapping[str, RecordedReasons | Mapping[str, Any]],
    decision: LoggedDecision,
    snapshot: Snapshot,
) -> Iterator[PastReason]:
    said = known.get(unit)
    if isinstance(said, RecordedReasons) and said.hosts.get(host):
        yield from (_reason(unit, said, one, snapshot) for one in said.hosts[host])
    elif unit in decision.failure_sentences:
        yield PastReason(unit, "", None, None, decision.failure_sentences[unit])
    elif isinstance(said, dict) and said.get(host):
        yield PastReason(unit, "", None, None, _plain(said[host]))
    else:
        yield PastReason(unit, "", None, None, "no reason is recorded")


def _read(said: Any) -> RecordedReasons | Mapping[str, Any]:
    """Ours in our form; those of other plugins as a map of hosts."""
    try:
        return msgspec.convert(said, RecordedReasons)
    except msgspec.ValidationError:
        return said if isinstance(said, dict) else {}


def _reason(unit: str, said: RecordedReasons, one: RecordedReason, snapshot: Snapshot) -> PastReason:
    fields = _Fields(*one)
    if not 0 <= fields.kind < len(said.kinds):
        return PastReason(unit, "", None, None, "its reason cannot be read")
    kind, sentence = said.kinds[fields.kind]
    vm, group = fields.vm or "", fields.group or ""
    of_vm = Named(vm, said.vms.get(vm) or vm_name(vm, snapshot))
    of_group = Named(group, said.groups.get(group) or group_name(group, snapshot))
    try:
        text = sentence.format(
            vm=of_vm.name,
            host=host_name(fields.host or "", snapshot),
            group=of_group.name,
            number=fields.number,
            unit=fields.unit or "",
            status=fields.status or "",
        )
    except (LookupError, ValueError, AttributeError, TypeError):
        text = sentence  # of a release that says more
    return PastReason(unit, kind, of_group if group else None, of_vm if vm else None, text)


def _plain(said: Any) -> str:
    return "; ".join(map(str, said)) if isinstance(said, list) else str(said)
