"""What the engine shows: what is upgraded, emptied, moved or backed up at the moment is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ovirt_enforcer.gates.gate import (
    ClusterGate,
    Facts,
    Gate,
    Held,
    HostAction,
    Movement,
    VmGate,
    by_vm,
    refused,
)
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.document import upgrade_text
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.store.enforcer.intents import IntentKind


class ClusterUpgradeGate(ClusterGate):
    """Closed while another upgrades a cluster: its hosts are emptied, and each move is in the way."""

    name = "cluster_upgrade"
    # What brings back what is out of service does not disturb the upgrade.
    at_any_time = (IntentKind.UPGRADE_HOST, IntentKind.ACTIVATE_HOST, IntentKind.START_VM)

    def cluster_blocked_reason(self, facts: Facts, cluster: str) -> str | None:
        known = facts.snapshot.cluster_by_id[cluster]
        own = known.upgrade_correlation_id in facts.remembered.own_upgrades
        return upgrade_text(known) if known.upgrade_mode and not own else None


_STATUSES: Final = {"maintenance": "is in maintenance", "preparing_for_maintenance": "goes into maintenance"}


class HostMaintenanceGate(Gate):
    """Leaves alone hosts in maintenance or on their way there: the engine empties them, and they stay so."""

    name = "host_maintenance"

    def blocked_reason(self, facts: Facts, cluster: str, step: Step) -> str | None:
        frozen = self.frozen_hosts(facts)
        return next((frozen[host] for host in (*step.sources, step.target) if host in frozen), None)

    def held(self, facts: Facts) -> Mapping[str, Held]:
        return {
            vm.id: Held(reason)
            for host, reason in self.frozen_hosts(facts).items()
            for vm in facts.snapshot.vms_of_host.get(host, ())
        }

    def frozen_hosts(self, facts: Facts) -> Mapping[str, str]:
        return {
            host.id: f"host {host.name} {_STATUSES[host.status]}"
            for host in facts.snapshot.hosts
            if host.status in _STATUSES
        }


class HostEmptyGate(Gate):
    """Closed for the deactivation of a host with VMs: the engine would drop rules while it drains it."""

    name = "host_empty"

    def blocked_reason(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return None

    def action_blocked_reason(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        if action.kind is not IntentKind.DEACTIVATE_HOST:
            return None
        there = {vm.id for vm in facts.snapshot.vms_of_host.get(action.host, ())}
        there.update(one.vm for one in facts.snapshot.pending if one.host == action.host)
        there.update(one.vm for one in facts.open_intents if action.host in (one.source, one.target))
        if not there:
            return None
        names = sorted(vm_name(vm, facts.snapshot) for vm in there)
        return f"the host is not empty: {', '.join(names)}"


class MovementGate(Gate):
    """Holds what touches a VM, a host or a group that moves already.

    The engine's own enforcement, its balancing, a maintenance or a person migrate as well. That is no reason
    to leave a whole cluster alone; but where they are at work, our migrations undo theirs, or they ours.
    What we ourselves have under way holds its VMs only: which of our steps may run at once the plan knows.
    """

    name = "movement"

    def blocked_reason(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return next(_reasons(facts, step), None)


def _reasons(facts: Facts, step: Step) -> Iterator[str]:
    names, peers, hosts = facts.snapshot, _peers(facts, step), (step.target, *step.sources)
    for movement in facts.movements:
        name = vm_name(movement.vm, names)
        if movement.vm in step.vms:
            yield f"{name} {_verb(movement)} already, by {'us' if movement.ours else 'the engine or a user'}"
        elif movement.ours:
            continue
        # A start takes its room on the host, and no more.
        elif movement.migrates and (host := next((one for one in hosts if one in movement.ends), None)):
            yield f"{name} {_verb(movement)} from or to {host_name(host, names)}, by the engine or a user"
        elif movement.vm in peers:
            yield f"{name} of affinity group {peers[movement.vm]} {_verb(movement)}, by the engine or a user"


def _verb(movement: Movement) -> str:
    return "is expected to be on its way (not confirmed)" if movement.expected else "is on its way"


def _peers(facts: Facts, step: Step) -> dict[str, str]:
    """The VMs that the step's have rules with, each with the name of a group that they share."""
    return {
        vm: group.name
        for moved in step.vms
        for group in facts.snapshot.groups_of_vm.get(moved, ())
        if group.vms_rule.enabled
        for vm in facts.snapshot.group_vms[group.id]
    }


class BackupGate(VmGate):
    """Holds a VM that is being backed up, as far as that is known: the engine says so when it refuses.

    A VM does not show that it is being backed up, and to ask for the backups of each takes a request each.
    """

    name = "backup"

    def held(self, facts: Facts) -> Mapping[str, Held]:
        seconds, found = facts.settings.cooldown_seconds, {}
        refusal = "the engine refused, since it is being backed up"
        for vm, (*_, last) in by_vm(facts.history).items():
            names_a_backup = refused(last) and "backup" in (last.error or "").lower()
            if names_a_backup and last.age_seconds < seconds:
                reason = f"{refusal}; it is asked again after {seconds:.0f} s"
                found[vm] = Held(reason, seconds - last.age_seconds)
        return found

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.cooldown_seconds


class LegalityGate(Gate):
    """Closed for a step that the rules or the room on its target forbid: the plan is older than the facts."""

    name = "legality"

    def blocked_reason(self, facts: Facts, cluster: str, step: Step) -> str | None:
        if legal(facts.snapshot, step):
            return None
        return "the rules or the room on the target no longer allow it"
