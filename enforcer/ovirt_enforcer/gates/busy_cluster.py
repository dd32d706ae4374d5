"""Closed while anything moves in the cluster: ours, the engine's enforcement, its balancing, or a person's.

A plan is made for VMs that stand still; two enforcers at once would undo each other's work.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.planning.plan import Step
from ovirt_placement.answers.names import vm_name
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent


class BusyClusterGate(Gate):
    name = "busy_cluster"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return why_busy(facts.snapshot, cluster, facts.open_intents)


def why_busy(snapshot: Snapshot, cluster: str, open_intents: Sequence[Intent]) -> str | None:
    """What moves in the cluster already; None if all stands still."""
    for intent in open_intents:
        if intent.cluster == cluster:
            return f"the migration of {vm_name(intent.vm, snapshot)} has not ended yet"
    for vm in snapshot.vms:
        if vm.cluster == cluster and (vm.status == "migrating" or vm.id in snapshot.pending_hosts):
            return f"{vm.name} is on its way already"
    return None
