"""A maintenance run as the store has it, and a host of it, of which a test says what it is about."""

from __future__ import annotations

from typing import Any

from ovirt_placement.store.enforcer.maintenance import (
    HostPhase,
    HostProgress,
    MaintenanceRequest,
    MaintenanceRun,
    RunState,
)
from tests.builders import CLUSTER


def host_of_run(phase: HostPhase, seconds: float = 1.0, **fields: Any) -> HostProgress:
    return HostProgress(**{"host": "h1", "name": "h1", "position": 0, **fields}, phase=phase, seconds=seconds)


def run_of(*hosts: HostProgress, **fields: Any) -> MaintenanceRun:
    """A run of these hosts that is under way."""
    defaults: dict[str, Any] = {
        "id": "r",
        "cluster": CLUSTER,
        "cluster_name": CLUSTER,
        "state": RunState.RUNNING,
        "request": MaintenanceRequest(),
        "requested_by": "ada",
        "created": 0.0,
        "updated": 0.0,
        "age_seconds": 9.0,
        "message": "",
        "violated": (),
    }
    return MaintenanceRun(hosts=hosts, **{**defaults, **fields})
