"""Leaves alone hosts that are in maintenance or go there: the engine empties them, and they stay empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_placement.planning.plan import Step

_STATUSES: Final = {
    "maintenance": "is in maintenance",
    "preparing_for_maintenance": "goes into maintenance",
}


class HostMaintenanceGate(Gate):
    name = "host_maintenance"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        frozen = self.frozen_hosts(facts)
        return next((frozen[host] for host in (*step.sources, step.target) if host in frozen), None)

    def frozen(self, facts: Facts) -> Mapping[str, str]:
        return {
            vm.id: reason
            for host, reason in self.frozen_hosts(facts).items()
            for vm in facts.snapshot.vms_of_host.get(host, ())
        }

    def frozen_hosts(self, facts: Facts) -> Mapping[str, str]:
        return {
            host.id: f"host {host.name} {_STATUSES[host.status]}"
            for host in facts.snapshot.hosts
            if host.status in _STATUSES
        }
