"""Takes hosts out of service and back, and stops and starts VMs that cannot migrate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ovirt_placement.engine.connection.client import EngineConnection, checked
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.reading.requests import read_fields
from ovirt_placement.engine.writing.migration import Conflict, PermissionDenied, Refused

#: What stands in the engine's log besides a deactivation.
_REASON: Final = "maintenance by ovirt-enforcer"


@dataclass(frozen=True, slots=True)
class HostState:
    """What the engine shows of a host."""

    status: str
    update_available: bool


def read_host(connection: EngineConnection, host_id: str) -> HostState | None:
    """Read a host; None if the engine has no such host. Raises what `EngineConnection.get` raises."""
    fields = read_fields(connection, "/hosts", host_id, "status", "update_available")
    if fields is None:
        return None
    status = xml.text(fields.get("status"), "unassigned")
    return HostState(status, xml.flag(fields.get("update_available")))


def deactivate(
    connection: EngineConnection, host_id: str, correlation_id: str, check: Callable[[], None]
) -> None:
    """Have the engine take a host into maintenance; it migrates away what still runs there.

    `check` is called right before the request is sent; what it raises prevents that. Raises a `Rejection`, or
    what `EngineConnection.get` raises, as do the others.
    """
    _act(connection, "hosts", host_id, "deactivate", correlation_id, check, reason=_REASON)


def upgrade(
    connection: EngineConnection,
    host_id: str,
    correlation_id: str,
    check: Callable[[], None],
    *,
    reboot: bool = True,
) -> None:
    """Have the updates installed that the engine has found; a host in maintenance stays there."""
    _act(connection, "hosts", host_id, "upgrade", correlation_id, check, reboot=reboot)


def activate(
    connection: EngineConnection, host_id: str, correlation_id: str, check: Callable[[], None]
) -> None:
    """Have the engine bring a host up."""
    _act(connection, "hosts", host_id, "activate", correlation_id, check)


def shut_down_vm(
    connection: EngineConnection, vm_id: str, correlation_id: str, check: Callable[[], None]
) -> None:
    """Have the guest of a VM shut down."""
    _act(connection, "vms", vm_id, "shutdown", correlation_id, check)


def start_vm(
    connection: EngineConnection, vm_id: str, correlation_id: str, check: Callable[[], None]
) -> None:
    """Have a VM started where the engine sees fit."""
    _act(connection, "vms", vm_id, "start", correlation_id, check)


def _act(
    connection: EngineConnection,
    collection: str,
    identity: str,
    action: str,
    correlation_id: str,
    check: Callable[[], None],
    **arguments: Any,
) -> None:
    path = f"/{collection}/{identity}/{action}"
    try:
        with checked(check), connection.session(path) as sdk:
            services = getattr(sdk.system_service(), f"{collection}_service")()
            service = getattr(services, f"{collection.removesuffix('s')}_service")(identity)
            getattr(service, action)(query={"correlation_id": correlation_id}, **arguments)
    except EngineFault as fault:
        kinds = {409: Conflict, 403: PermissionDenied, 400: Refused, 404: Refused}
        kind = kinds.get(fault.code)
        raise (fault if kind is None else kind(fault.fault.messages)) from None
