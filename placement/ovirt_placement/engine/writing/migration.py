"""Migrates a VM and watches it to its end; what the engine may answer becomes a type."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from ovirtsdk4 import types

from ovirt_placement.engine.connection.client import EngineConnection, checked
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.reading.requests import get_entity, read_fields

#: What the engine keeps of a correlation id; anything else it would cut away, and we never find it again.
_CORRELATION_ID = re.compile(r"[0-9A-Za-z_-]{1,36}")


class Rejection(Exception):
    """The engine did not start the migration; `messages` are its own sentences."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        super().__init__("; ".join(messages) or "the engine gives no reason")
        self.messages = messages


class Vetoed(Rejection):
    """An external filter refused the target when the engine carried the migration out (400, no reason)."""

    def __init__(self) -> None:
        super().__init__(("an external filter of the scheduling policy refused the host",))


class Conflict(Rejection):
    """The state of VM, host or rules stands against it for now (409)."""


class Refused(Rejection):
    """The engine cannot do what is asked, such as with no host to choose from (400)."""


class Gone(Rejection):
    """The VM or the host does not exist any more."""


class PermissionDenied(Rejection):
    """The engine's user may not migrate this VM (403)."""


def migrate(
    connection: EngineConnection,
    vm_id: str,
    host_id: str | None,
    correlation_id: str,
    closure: bool = False,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Ask the engine to migrate a VM to a host; on return it is accepted and under way, not finished.

    Without a host the engine chooses one.

    With `closure`, the VMs that a hard positive rule ties to it move along. The correlation id (letters,
    digits, `_` and `-`, at most 36) stands on every event of the migration. `check` is called right before
    the request is sent, after any log-in; what it raises prevents that. Raises a `Rejection`, or
    `EngineAway`, whose `request_sent` shows whether the engine may have started it nevertheless.
    """
    if not _CORRELATION_ID.fullmatch(correlation_id):
        raise ValueError(f"the engine would not keep the correlation id {correlation_id!r}")
    try:
        with checked(check), connection.session(f"/vms/{vm_id}/migrate") as sdk:
            sdk.system_service().vms_service().vm_service(vm_id).migrate(
                host=types.Host(id=host_id) if host_id is not None else None,
                migrate_vms_in_affinity_closure=closure or None,
                query={"correlation_id": correlation_id},
            )
    except EngineFault as fault:
        raise _rejection(fault, connection, vm_id, host_id) from None


def _rejection(
    fault: EngineFault, connection: EngineConnection, vm_id: str, host_id: str | None
) -> Exception:
    messages = fault.fault.messages
    if fault.code == 400 and fault.fault.detail.strip() == "[]":
        return Vetoed()
    if fault.code == 409:
        return Conflict(messages)
    if fault.code == 403:
        return PermissionDenied(messages)
    if fault.code in (200, 400, 404):
        # The sentence would show it, but in the engine's language and release.
        for kind, collection, identity in (("VM", "/vms", vm_id), ("host", "/hosts", host_id)):
            if identity is not None and get_entity(connection, collection, identity) is None:
                return Gone((f"the engine has no {kind} {identity}",))
        return Refused(messages)
    return fault


@dataclass(frozen=True)
class VmState:
    """What the engine shows of a VM: during a migration its host is the source, then briefly the target."""

    status: str
    host: str | None


def read_vm(connection: EngineConnection, vm_id: str) -> VmState | None:
    """Read where a VM is now; None if the engine has no such VM."""
    fields = read_fields(connection, "/vms", vm_id, "status", "host")
    if fields is None:
        return None
    return VmState(xml.text(fields.get("status"), "unassigned"), xml.reference(fields.get("host")))


class Progress(StrEnum):
    UNDER_WAY = "under way"
    ARRIVED = "arrived"  # up on the target
    RETURNED = "returned"  # up on the source: failed or cancelled
    ELSEWHERE = "elsewhere"  # up on a third host: another migration moved it
    STOPPED = "stopped"  # on no host any more
    GONE = "gone"  # removed from the engine


@dataclass(frozen=True)
class Watch:
    """Follows one accepted migration: feed it what `read_vm` sees; it sleeps nowhere and reads no clock."""

    source: str
    target: str
    #: The moment of acceptance, by the clock that `step` is given, in seconds.
    accepted_at: float
    #: Until then a VM that still shows as up on its source may not have been saved as migrating yet.
    patience_seconds: float = 5.0
    migrating_seen: bool = False
    progress: Progress = Progress.UNDER_WAY

    @property
    def ended(self) -> bool:
        return self.progress is not Progress.UNDER_WAY

    def step(self, seen: VmState | None, now: float) -> Watch:
        """Return the watch after one more look at the VM."""
        if seen is None:
            return replace(self, progress=Progress.GONE)
        if seen.status == "migrating":
            return replace(self, migrating_seen=True)
        if seen.host is None:
            return replace(self, progress=Progress.STOPPED)
        if seen.host == self.target:
            return replace(self, progress=Progress.ARRIVED)
        if seen.host != self.source:
            return replace(self, progress=Progress.ELSEWHERE)
        if self.migrating_seen or now - self.accepted_at >= self.patience_seconds:
            return replace(self, progress=Progress.RETURNED)
        return self
