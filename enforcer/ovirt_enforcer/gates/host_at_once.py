"""Closed while many migrations lead from a host of the step, or to its target: the host carries them all."""

from __future__ import annotations

from collections import Counter

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import fits
from ovirt_enforcer.gates.movement import entering, leaving
from ovirt_placement.model.names import host_name
from ovirt_placement.planning.plan import Step


class HostAtOnceGate(Gate):
    name = "host_at_once"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        for source, more in Counter(step.sources).items():
            count = leaving(facts.movements, source)
            if not fits(count, more, facts.settings.host_migrations_out):
                name = host_name(source, facts.snapshot)
                return f"migrations under way from {name}: {count}, and host_migrations_out lets no more join"
        count = entering(facts.movements, step.target)
        if not fits(count, len(step.vms), facts.settings.host_migrations_in):
            name = host_name(step.target, facts.snapshot)
            return f"migrations under way to {name}: {count}, and host_migrations_in lets no more join"
        return None
