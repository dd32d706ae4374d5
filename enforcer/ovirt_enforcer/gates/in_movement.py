"""Holds what touches a VM, a host or a group that moves already.

The engine's own enforcement, its balancing, a maintenance or a person migrate as well. That is no reason to
leave a whole cluster alone; but where they are at work, our migrations undo theirs, or they ours.
What we ourselves have under way holds its VMs only: which of our steps may run at once the plan knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.movement import Movement
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.planning.plan import Step


class MovementGate(Gate):
    name = "movement"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return next(_reasons(facts, step), None)


def _reasons(facts: Facts, step: Step) -> Iterator[str]:
    names, peers = facts.snapshot, _peers(facts, step)
    for movement in facts.movements:
        name = vm_name(movement.vm, names)
        if movement.vm in step.vms:
            yield f"{name} {_way(movement)} already, by {'us' if movement.ours else 'somebody else'}"
        elif movement.ours:
            continue
        elif (host := _shared_host(movement, step)) is not None:
            yield f"{name} {_way(movement)} from or to {host_name(host, names)}, by somebody else"
        elif movement.vm in peers:
            yield f"{name} of affinity group {peers[movement.vm]} {_way(movement)}, by somebody else"


def _way(movement: Movement) -> str:
    return "is expected to be on its way (not confirmed)" if movement.expected else "is on its way"


def _shared_host(movement: Movement, step: Step) -> str | None:
    """A host that both a migration and the step change; a start takes its room there, and no more."""
    if not movement.migrates:
        return None
    ends = (movement.source, *movement.targets)
    return next((host for host in (step.target, *step.sources) if host in ends), None)


def _peers(facts: Facts, step: Step) -> dict[str, str]:
    """The VMs that the step's have rules with, each with the name of a group that they share."""
    return {
        vm: group.name
        for moved in step.vms
        for group in facts.snapshot.groups_of_vm.get(moved, ())
        if group.vms_rule.enabled
        for vm in facts.snapshot.group_vms[group.id]
    }
