"""Takes hosts out of service and back, stops and starts VMs, and shows that a cluster is being upgraded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ovirtsdk4.types import ClusterUpgradeAction

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
            service = sdk.system_service().service(f"{collection}/{identity}")
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


# That a cluster is being upgraded, and how far, the engine shows to people; it does nothing else with it. It
# keeps the correlation id of who began it. A second beginning is refused while one is under way.


@dataclass(frozen=True, slots=True)
class UpgradeState:
    """What the engine shows of a cluster's upgrade."""

    running: bool
    #: The correlation id of who began the last one.
    correlation_id: str
    #: Whether the engine keeps that id at all, as it does since it has a percentage.
    attributed: bool


def read_upgrade(connection: EngineConnection, cluster_id: str) -> UpgradeState:
    """Read how a cluster's upgrade stands; none is under way in one that is gone.

    As all that follow it raises what `EngineConnection.get` raises.
    """
    names = ("upgrade_in_progress", "upgrade_correlation_id", "upgrade_percent_complete")
    fields = read_fields(connection, "/clusters", cluster_id, *names) or {}
    return UpgradeState(
        xml.flag(fields.get("upgrade_in_progress")),
        xml.text(fields.get("upgrade_correlation_id"), ""),
        "upgrade_percent_complete" in fields,
    )


def start_upgrade(connection: EngineConnection, cluster_id: str, correlation_id: str) -> None:
    """Show that an upgrade has begun; the engine refuses that while another is under way."""
    _upgrade(connection, cluster_id, correlation_id, upgrade_action=ClusterUpgradeAction.START)


def show_progress(connection: EngineConnection, cluster_id: str, correlation_id: str, percent: int) -> None:
    """Show how far it is; the engine refuses that if another began it."""
    action = ClusterUpgradeAction.UPDATE_PROGRESS
    _upgrade(connection, cluster_id, correlation_id, upgrade_action=action, upgrade_percent_complete=percent)


def finish_upgrade(connection: EngineConnection, cluster_id: str, correlation_id: str) -> None:
    """Show that it is over, also one that another began."""
    _upgrade(connection, cluster_id, correlation_id, upgrade_action=ClusterUpgradeAction.FINISH)


def _upgrade(connection: EngineConnection, cluster_id: str, correlation_id: str, **arguments: Any) -> None:
    with connection.session(f"/clusters/{cluster_id}/upgrade") as sdk:
        service = sdk.system_service().service(f"clusters/{cluster_id}")
        service.upgrade(query={"correlation_id": correlation_id}, **arguments)
