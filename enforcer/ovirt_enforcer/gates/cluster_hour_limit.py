"""Closed after many migrations in a cluster: a net below its repair, should it ever go round in circles."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import HOUR_SECONDS, begun_within, fits, seconds_until_fewer
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.planning.plan import Step


class ClusterHourLimitGate(Gate):
    name = "cluster_limit"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        count = begun_within(facts.begun_in(cluster), HOUR_SECONDS)
        if fits(count, len(step.vms), facts.settings.cluster_migrations_per_hour):
            return None
        return f"migrations in the last hour: {count}, and cluster_migrations_per_hour lets no more follow"

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        limit = facts.settings.cluster_migrations_per_hour
        return seconds_until_fewer(facts.begun_in(cluster), HOUR_SECONDS, limit)

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return HOUR_SECONDS
