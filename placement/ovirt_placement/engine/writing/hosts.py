"""Takes hosts out of service and back, and stops and starts VMs that cannot migrate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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


def _act(
    collection: str,
    action: str,
    connection: EngineConnection,
    identity: str,
    correlation_id: str,
    check: Callable[[], None],
    **arguments: Any,
) -> None:
    """Ask the engine for an action on one of its hosts or VMs.

    `check` is called right before the request is sent; what it raises prevents that. Raises a `Rejection`, or
    what `EngineConnection.get` raises.
    """
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


# Each takes the connection, the id, the correlation id and the check.

#: Takes a host into maintenance; the engine migrates away what still runs there.
deactivate = partial(_act, "hosts", "deactivate", reason=_REASON)
#: Installs the updates that the engine has found; a host in maintenance stays there.
upgrade = partial(_act, "hosts", "upgrade", reboot=True)
#: Brings a host up.
activate = partial(_act, "hosts", "activate")
#: Has the guest of a VM shut down.
shut_down_vm = partial(_act, "vms", "shutdown")
#: Starts a VM where the engine sees fit.
start_vm = partial(_act, "vms", "start")
