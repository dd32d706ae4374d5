"""Leaves alone what was opted out: VMs, hosts in both directions, and groups, by list or by tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.host_action import HostAction
from ovirt_enforcer.gates.naming import group_ids, named, plain_group_name
from ovirt_enforcer.gates.purpose import why_for_nothing
from ovirt_placement.model import Host, Vm
from ovirt_placement.model.names import group_name
from ovirt_placement.planning.plan import Step


class ExclusionGate(Gate):
    name = "exclusion"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        vms = (vm for vm in map(facts.snapshot.vm_by_id.get, step.vms) if vm is not None)
        hosts = (host for host in map(facts.snapshot.host_by_id.get, (*step.sources, step.target)) if host)
        reasons = chain((_why_vm(facts, vm) for vm in vms), (_why_host(facts, host) for host in hosts))
        if (reason := next(filter(None, reasons), None)) is not None:
            return reason
        return why_for_nothing(step, facts.plan, lambda group: _why_group(facts, group))

    def why_action_closed(self, facts: Facts, cluster: str, action: HostAction) -> str | None:
        vm = facts.snapshot.vm_by_id.get(action.vm)
        host = facts.snapshot.host_by_id.get(action.host)
        return (vm and _why_vm(facts, vm)) or (host and _why_host(facts, host)) or None

    def frozen(self, facts: Facts) -> Mapping[str, str]:
        return dict(_held(facts))

    def frozen_hosts(self, facts: Facts) -> Mapping[str, str]:
        return {host.id: why for host in facts.snapshot.hosts if (why := _why_host(facts, host)) is not None}

    def held_groups(self, facts: Facts) -> Mapping[str, str]:
        groups = group_ids(facts.snapshot)
        return {group: why for group in groups if (why := _why_group(facts, group)) is not None}


def _held(facts: Facts) -> Iterator[tuple[str, str]]:
    for host in facts.snapshot.hosts:
        if (reason := _why_host(facts, host)) is not None:
            yield from ((vm.id, reason) for vm in facts.snapshot.vms_of_host.get(host.id, ()))
    for vm in facts.snapshot.vms:
        if (reason := _why_vm(facts, vm)) is not None:
            yield vm.id, reason


def _why_vm(facts: Facts, vm: Vm) -> str | None:
    if named(facts.settings.exclude_vms, vm.id, vm.name):
        return f"{vm.name} is among exclude_vms"
    tag = facts.settings.exclude_tag
    if vm.id in facts.remembered.tagged_vms or tag in vm.tags:
        return f"{vm.name} bears the tag {tag}"
    return None


def _why_host(facts: Facts, host: Host) -> str | None:
    if named(facts.settings.exclude_hosts, host.id, host.name):
        return f"host {host.name} is among exclude_hosts"
    tag = facts.settings.exclude_tag
    return f"host {host.name} bears the tag {tag}" if tag in host.tags else None


def _why_group(facts: Facts, group: str) -> str | None:
    if named(facts.settings.exclude_groups, group, plain_group_name(group, facts.snapshot)):
        return f"{group_name(group, facts.snapshot)} is among exclude_groups"
    return None
