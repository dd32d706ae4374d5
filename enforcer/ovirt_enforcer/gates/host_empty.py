"""Closed for the deactivation of a host that is not empty: the engine would drop rules while it drains it."""

from __future__ import annotations

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.host_action import HostAction
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.intents import IntentKind


class HostEmptyGate(Gate):
    name = "host_empty"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return None

    def why_action_closed(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        if action.kind is not IntentKind.DEACTIVATE_HOST:
            return None
        there = {vm.id for vm in facts.snapshot.vms_of_host.get(action.host, ())}
        there.update(one.vm for one in facts.snapshot.pending if one.host == action.host)
        there.update(one.vm for one in facts.open_intents if action.host in (one.source, one.target))
        if not there:
            return None
        names = sorted(vm_name(vm, facts.snapshot) for vm in there)
        return f"the host is not empty: {', '.join(names)}"
