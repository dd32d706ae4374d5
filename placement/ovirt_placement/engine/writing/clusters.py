"""Shows in the engine that a cluster is being upgraded, and how far: for people, it does nothing else.

The engine keeps the correlation id of who began it. A second beginning is refused while one is under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ovirtsdk4.types import ClusterUpgradeAction

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.reading.requests import read_fields


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
    _act(connection, cluster_id, correlation_id, upgrade_action=ClusterUpgradeAction.START)


def show_progress(connection: EngineConnection, cluster_id: str, correlation_id: str, percent: int) -> None:
    """Show how far it is; the engine refuses that if another began it."""
    action = ClusterUpgradeAction.UPDATE_PROGRESS
    _act(connection, cluster_id, correlation_id, upgrade_action=action, upgrade_percent_complete=percent)


def finish_upgrade(connection: EngineConnection, cluster_id: str, correlation_id: str) -> None:
    """Show that it is over, also one that another began."""
    _act(connection, cluster_id, correlation_id, upgrade_action=ClusterUpgradeAction.FINISH)


def _act(connection: EngineConnection, cluster_id: str, correlation_id: str, **arguments: Any) -> None:
    with connection.session(f"/clusters/{cluster_id}/upgrade") as sdk:
        service = sdk.system_service().clusters_service().cluster_service(cluster_id)
        service.upgrade(query={"correlation_id": correlation_id}, **arguments)
