"""The parts that reconcile all clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ovirt_enforcer.actions.migrate_vm.executor import Executor
from ovirt_enforcer.actions.migrate_vm.origin import Origins
from ovirt_enforcer.gates.memory import Memory
from ovirt_enforcer.maintenance.runs import MaintenanceRuns
from ovirt_enforcer.service.orders import Orders
from ovirt_enforcer.service.planners import Planners
from ovirt_enforcer.service.recording import Recorder
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.config import HaSettings


@dataclass(frozen=True, slots=True)
class Parts:
    """What reconciles clusters."""

    settings: EnforcerSettings
    planners: Planners
    executor: Executor
    memory: Memory
    recorder: Recorder
    orders: Orders
    #: Seconds that only grow.
    clock: Callable[[], float]
    #: Whether another piece of work is to be done.
    goes_on: Callable[[], bool]
    #: Who else migrates VMs.
    origins: Origins
    #: Which failure domains there are.
    ha: HaSettings
    #: Rolling maintenance.
    maintenance: MaintenanceRuns
