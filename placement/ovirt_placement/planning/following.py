"""A state that goes on step by step: each step is judged by as much of it as decides about that step."""

from __future__ import annotations

from collections import defaultdict

from msgspec.structs import replace

from ovirt_placement.lookups.index import share
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.planning.legality import filters_of, legal
from ovirt_placement.planning.plan import Step
from ovirt_placement.rules.failover.part_of_state import part_of
from ovirt_placement.rules.rule import Scope
from ovirt_placement.rules.world import World

#: Of VMs with more peers the whole state is looked at: next to nothing of it would be left out.
_MOST_PEERS = 100


class Following:
    """Where filters look at the whole cluster, or VMs have many peers, that is the whole state."""

    def __init__(self, snapshot: Snapshot, cluster: str) -> None:
        self._start = snapshot
        rules = filters_of(snapshot, cluster)
        self._nearby = all(
            rule.is_fixed(snapshot, cluster) or rule.scope_of(snapshot, cluster) is not Scope.CLUSTER
            for rule in rules
        )
        #: What has changed since the start.
        self._vms: dict[str, Vm] = {}
        self._hosts: dict[str, Host] = {}
        #: VMs that have come to a host since the start; some may have left it again.
        self._came: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def take(self, step: Step) -> bool:
        """Go on by a step, if all rules let it pass."""
        nearby = self._nearby and self._peers(step) <= _MOST_PEERS
        before = self._looked_at(step) if nearby else self.state()
        if not legal(before, step):
            return False
        after = World(before).moved(step.vms, step.target).snapshot
        for host in (*step.sources, step.target):
            if host in after.host_by_id:
                self._hosts[host] = after.host_by_id[host]
        for vm in step.vms:
            self._vms[vm] = after.vm_by_id[vm]
            self._came[step.target][vm] = None
        if not nearby:
            self._start, self._vms, self._hosts = after, {}, {}
            self._came.clear()
        return True

    def state(self) -> Snapshot:
        """The whole state by now."""
        return self._with_changes(self._start) if self._vms else self._start

    def _peers(self, step: Step) -> int:
        """How many VMs share a group with those that move, at most."""
        start = self._start
        groups = {group.id for vm in step.vms for group in start.groups_of_vm.get(vm, ())}
        return sum(len(start.group_vms[group]) for group in groups)

    def _looked_at(self, step: Step) -> Snapshot:
        known = self._start.host_by_id
        hosts = frozenset(host for host in (*step.sources, step.target) if host in known)
        came = dict.fromkeys(vm for host in hosts for vm in self._came[host])
        vms = [vm for vm in (*step.vms, *came) if vm in self._start.vm_by_id]
        return self._with_changes(part_of(self._start, vms, hosts))

    def _with_changes(self, part: Snapshot) -> Snapshot:
        after = replace(
            part,
            vms=tuple(self._vms.get(vm.id, vm) for vm in part.vms),
            hosts=tuple(self._hosts.get(host.id, host) for host in part.hosts),
        )
        share(after, part)
        return after
