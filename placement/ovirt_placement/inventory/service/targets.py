"""Where migrations go: the engine shows no target of one, but for the events that report its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ovirt_placement.engine.event_codes import EventCode
from ovirt_placement.engine.reading.events import CANCELLED, DONE, FAILED, STARTED, EngineEvent
from ovirt_placement.model import Vm

#: The engine tried one target without success and looks for another.
_LOOKS_FOR_ANOTHER = EventCode.VM_MIGRATION_TRYING_RERUN
#: What the event of a migration's start says between the names of its source and its target, and next.
_BEFORE_THE_TARGET = ", Destination: "
_AFTER_THE_TARGET = (", User: ", ", Reason: ")
#: The VM may show that it migrates so much later than the event reports.
_SHOWN_AFTER_SECONDS = 5.0
#: How long the end of a migration is remembered, for events of its start that appear late.
_REMEMBERED_SECONDS = 60.0


@dataclass(frozen=True)
class _Known:
    """The newest that events report of a VM's migration; without a host it has ended."""

    event: int
    host: str | None
    at: float


class MigrationTargets:
    """The targets of migrations under way, by VM id, as far as events reported them."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        #: VMs that were read as migrating since their migration was reported.
        self._migrating: set[str] = set()

    def report(self, event: EngineEvent, vm_name: str, hosts: Mapping[str, str], now: float) -> None:
        """Take what an event reports; hosts are ids by name.

        Events may come in any order: what one with a higher id has reported stands.
        """
        if event.vm is None or event.code not in STARTED | DONE | FAILED | CANCELLED | {_LOOKS_FOR_ANOTHER}:
            return
        known = self._known.get(event.vm)
        if known is not None and known.event >= event.id:
            return
        host = destination(event.description, vm_name, hosts) if event.code in STARTED else None
        self._known[event.vm] = _Known(event.id, host, now)
        self._migrating.discard(event.vm)

    def read(self, vm: Vm, began: float) -> None:
        """Take what a reading shows: a VM that is no longer migrating has no target.

        A reading that began before the event was heard shows nothing of what followed it.
        """
        known = self._known.get(vm.id)
        if known is None or began < known.at:
            return
        if vm.status == "migrating":
            self._migrating.add(vm.id)
        elif known.host is not None and (
            vm.id in self._migrating or vm.host == known.host or began >= known.at + _SHOWN_AFTER_SECONDS
        ):
            self._known[vm.id] = _Known(known.event, None, began)
        elif known.host is None and began >= known.at + _REMEMBERED_SECONDS:
            del self._known[vm.id]
            self._migrating.discard(vm.id)

    def of(self, vm_id: str) -> str | None:
        """Return the host that the VM is on its way to; None if it is not, or nobody knows."""
        known = self._known.get(vm_id)
        return None if known is None else known.host


def destination(description: str, vm_name: str, hosts: Mapping[str, str]) -> str | None:
    """Find the target in the text of event 62 or 67; None unless it can mean but one host.

    The text is "... (VM: v, Source: h1, Destination: h2, User: u)": names are taken as a whole, so that one
    with a comma, or with the text's own words in it, misleads nobody.
    """
    _, found, rest = description.partition(f"(VM: {vm_name}, Source: ")
    if not found:
        return None
    meant = {
        identity
        for source in hosts
        if rest.startswith(source) and rest.startswith(_BEFORE_THE_TARGET, len(source))
        for name, identity in hosts.items()
        if rest.startswith(name, target := len(source) + len(_BEFORE_THE_TARGET))
        and rest.startswith(_AFTER_THE_TARGET, target + len(name))
    }
    return meant.pop() if len(meant) == 1 else None
