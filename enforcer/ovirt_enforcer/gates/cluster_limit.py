"""Closed after many migrations in a cluster: a net below its repair, should it ever go round in circles."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import HOUR_SECONDS, within_an_hour
from ovirt_enforcer.planning.plan import Step
from ovirt_enforcer.settings import EnforcerSettings


class ClusterLimitGate(Gate):
    name = "cluster_limit"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        count = within_an_hour(intent for intent in facts.history if intent.cluster == cluster)
        if count < facts.settings.cluster_migrations_per_hour:
            return None
        return f"{count} migrations in the last hour, as many as cluster_migrations_per_hour allows"

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return HOUR_SECONDS
