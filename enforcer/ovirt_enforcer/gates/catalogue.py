"""Every gate once, in the order in which they are asked: the first that is closed says why."""

from __future__ import annotations

from typing import Final

from ovirt_enforcer.gates.approval import ApprovalGate
from ovirt_enforcer.gates.backup import BackupGate
from ovirt_enforcer.gates.breaker import BreakerGate
from ovirt_enforcer.gates.cluster_at_once import ClusterAtOnceGate
from ovirt_enforcer.gates.cluster_cycle_limit import ClusterCycleLimitGate
from ovirt_enforcer.gates.cluster_hour_limit import ClusterHourLimitGate
from ovirt_enforcer.gates.cluster_upgrade import ClusterUpgradeGate
from ovirt_enforcer.gates.cooldown import CooldownGate
from ovirt_enforcer.gates.engine_at_once import EngineAtOnceGate
from ovirt_enforcer.gates.exclusion import ExclusionGate
from ovirt_enforcer.gates.gate import Gate
from ovirt_enforcer.gates.hold import HoldGate
from ovirt_enforcer.gates.host_at_once import HostAtOnceGate
from ovirt_enforcer.gates.host_empty import HostEmptyGate
from ovirt_enforcer.gates.host_maintenance import HostMaintenanceGate
from ovirt_enforcer.gates.in_movement import MovementGate
from ovirt_enforcer.gates.just_moved import JustMovedGate
from ovirt_enforcer.gates.legality import LegalityGate
from ovirt_enforcer.gates.mode import ModeGate
from ovirt_enforcer.gates.pause import PauseGate
from ovirt_enforcer.gates.time_windows import TimeWindowsGate
from ovirt_enforcer.gates.vm_hour_limit import VmHourLimitGate

GATES: Final[tuple[Gate, ...]] = (
    ModeGate(),
    PauseGate(),
    ExclusionGate(),
    ClusterUpgradeGate(),
    HostMaintenanceGate(),
    HostEmptyGate(),
    TimeWindowsGate(),
    BreakerGate(),
    HoldGate(),
    ApprovalGate(),
    MovementGate(),
    EngineAtOnceGate(),
    ClusterAtOnceGate(),
    HostAtOnceGate(),
    ClusterCycleLimitGate(),
    ClusterHourLimitGate(),
    CooldownGate(),
    JustMovedGate(),
    VmHourLimitGate(),
    BackupGate(),
    LegalityGate(),
)
