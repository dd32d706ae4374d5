"""Closed while many migrations are under way in a cluster."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import fits
from ovirt_placement.planning.plan import Step


class ClusterAtOnceGate(Gate):
    name = "cluster_at_once"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        count = sum(movement.migrates and movement.cluster == cluster for movement in facts.movements)
        if fits(count, len(step.vms), facts.settings.cluster_migrations_at_once):
            return None
        return f"migrations under way here: {count}, and cluster_migrations_at_once lets no more join"
