"""Closed after many migrations began in a cluster within one cycle: this many, then look whether it helps."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import begun_within, fits, seconds_until_fewer
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.planning.plan import Step


class ClusterCycleLimitGate(Gate):
    name = "cluster_cycle_limit"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        count = begun_within(facts.begun_in(cluster), facts.settings.interval_seconds)
        if fits(count, len(step.vms), facts.settings.cluster_migrations_per_cycle):
            return None
        return f"migrations within this cycle: {count}, and cluster_migrations_per_cycle lets no more follow"

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        limit = facts.settings.cluster_migrations_per_cycle
        return seconds_until_fewer(facts.begun_in(cluster), facts.settings.interval_seconds, limit)

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.interval_seconds
