"""Closed while a cluster is upgraded: its hosts are emptied one by one, and each move would be in the way."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_placement.planning.plan import Step


class ClusterUpgradeGate(Gate):
    name = "cluster_upgrade"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        upgraded = facts.snapshot.cluster_by_id[cluster].upgrade_mode
        return "the cluster is being upgraded" if upgraded else None
