"""Every gate once, in the order in which they are asked: the first that is closed says why."""

from __future__ import annotations

from typing import Final

from ovirt_enforcer.gates.busy_cluster import BusyClusterGate
from ovirt_enforcer.gates.cluster_limit import ClusterLimitGate
from ovirt_enforcer.gates.cluster_upgrade import ClusterUpgradeGate
from ovirt_enforcer.gates.cooldown import CooldownGate
from ovirt_enforcer.gates.gate import Gate
from ovirt_enforcer.gates.legality import LegalityGate
from ovirt_enforcer.gates.mode import ModeGate
from ovirt_enforcer.gates.vm_limit import VmLimitGate

GATES: Final[tuple[Gate, ...]] = (
    ModeGate(),
    ClusterUpgradeGate(),
    BusyClusterGate(),
    ClusterLimitGate(),
    CooldownGate(),
    VmLimitGate(),
    LegalityGate(),
)
