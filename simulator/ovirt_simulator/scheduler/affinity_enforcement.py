"""The engine's own affinity enforcement: once a minute, one VM a cluster moves towards its hard rules.

Source: the engine's AffinityRulesEnforcementManager and AffinityRulesEnforcer. Soft groups are left out: they
need a second scheduling.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..core import affinity
from ..core.backend import Backend
from ..core.entities import AffinityGroup, Cluster, Vm
from ..core.rejections import Rejected
from ..core.state import State
from .migrating import MigrateBySystem
from .placing import Scheduler
from .request import Request

_REASON = "Affinity rules enforcement"


class AffinityEnforcement:
    """Finds VMs that break a hard rule, and migrates the first that has anywhere to go."""

    def __init__(self, backend: Backend, scheduler: Scheduler, migrate: MigrateBySystem) -> None:
        self._backend = backend
        self._scheduler = scheduler
        self._migrate = migrate

    def cycle(self) -> None:
        """Migrate at most one VM in each cluster that has no VM migrating and is not being upgraded."""
        state = self._backend.state
        for cluster in tuple(state.clusters.values()):
            with self._backend.lock:
                vms = [vm for vm in state.vms.values() if vm.cluster == cluster.id]
                if cluster.upgrade_mode or any(vm.status == "migrating" for vm in vms):
                    continue
                found = list(dict.fromkeys(vm.id for vm in candidates(state, cluster)))
            self._migrate_first(found)

    def _migrate_first(self, vm_ids: Sequence[str]) -> None:
        for vm_id in vm_ids:
            if not self.can_leave(vm_id):
                continue
            try:
                self._migrate(vm_id, _REASON)
            except Rejected:
                continue
            return

    def can_leave(self, vm_id: str) -> bool:
        """Tell whether the VM is movable, and internal filters leave another host."""
        with self._backend.lock:
            vm = self._backend.state.vms[vm_id]
            if vm.host is None or not vm.movable:
                return False
            try:
                self._scheduler.validate(Request(vm_ids=(vm_id,), blacklist=frozenset({vm.host})), "migrate")
            except Rejected:
                return False
        return True


def candidates(state: State, cluster: Cluster) -> Iterator[Vm]:
    """Give the VMs that break hard rules, in the engine's order; where it shuffles, by id."""
    groups = state.groups_of(cluster.id)
    yield from _off_their_hosts(state, cluster, [group for group in groups if group.hosts_rule.hard])
    yield from _off_their_peers(state, [group for group in groups if group.vms_rule.hard])


def _off_their_hosts(state: State, cluster: Cluster, groups: Sequence[AffinityGroup]) -> list[Vm]:
    """Give VMs that break host rules, those that break the fewest first (as the engine does)."""
    violations: dict[str, int] = defaultdict(int)
    rules = [
        (g.hosts_rule.positive, affinity.member_vms(state, g), affinity.member_hosts(state, g))
        for g in groups
    ]
    for label in affinity.legacy_labels(state.labels.values(), cluster):
        rules.append((True, tuple(state.vms[i] for i in label.vms), frozenset(label.hosts)))
    for positive, vms, hosts in rules:
        for vm in vms:
            if hosts and vm.host is not None and (vm.host in hosts) != positive:
                violations[vm.id] += 1
    return [state.vms[vm_id] for vm_id in sorted(violations, key=lambda i: (violations[i], i))]


def _off_their_peers(state: State, groups: Sequence[AffinityGroup]) -> Iterator[Vm]:
    """Give VMs that break VM rules: of the largest group first, minorities and crowds first within it."""
    positive = [vm.id for g in groups if g.vms_rule.positive for vm in affinity.member_vms(state, g)]
    sets = [(True, ids) for ids in affinity.unified_groups(state, positive)]
    for group in groups:
        if not group.vms_rule.positive:
            sets.append((False, tuple(vm.id for vm in affinity.member_vms(state, group))))
    by_least_id = sorted(sets, key=lambda entry: min(entry[1], default=""), reverse=True)
    for together, ids in sorted(by_least_id, key=lambda entry: -len(entry[1])):
        yield from _of_group(state, ids, together=together)


def _of_group(state: State, vm_ids: Sequence[str], *, together: bool) -> Iterator[Vm]:
    by_host: dict[str, list[Vm]] = defaultdict(list)
    for vm_id in sorted(vm_ids):
        vm = state.vms[vm_id]
        if vm.host is not None:
            by_host[vm.host].append(vm)
    if together:
        buckets = sorted(by_host.values(), key=len) if len(by_host) > 1 else []
    else:
        buckets = sorted((vms for vms in by_host.values() if len(vms) > 1), key=len, reverse=True)
    for bucket in buckets:
        if all(vm.movable for vm in bucket):
            yield from bucket
