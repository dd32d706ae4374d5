"""The engine's own affinity enforcement: once a minute, one VM a cluster moves towards its hard rules.

Source: the engine's AffinityRulesEnforcementManager and AffinityRulesEnforcer. Soft groups are left out: they
need a second scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ovirt_simulator.core import affinity
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.entities import AffinityGroup, AffinityLabel, Cluster, Vm
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.core.state import State
from ovirt_simulator.scheduler.external import MigrateBySystem
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.java import HashMap, guid_order
from ovirt_simulator.scheduler.placing import Scheduler

_REASON = "Affinity rules enforcement"
#: Puts VMs into any order, in place.
Shuffle = Callable[[list[Vm]], None]


class AffinityEnforcement:
    """Finds VMs that violate a hard rule, and migrates the first that has anywhere to go."""

    def __init__(self, backend: Backend, scheduler: Scheduler, migrate: MigrateBySystem) -> None:
        self._backend = backend
        self._scheduler = scheduler
        self._migrate = migrate

    def cycle(self) -> None:
        """Migrate at most one VM in each cluster that has no VM migrating, be it upgraded or not.

        The engine passes over clusters with the policy InClusterUpgrade, which no cluster can have any more.
        """
        state = self._backend.state
        for cluster in tuple(state.clusters.values()):
            with self._backend.lock:
                vms = [vm for vm in state.vms.values() if vm.cluster == cluster.id]
                if any(vm.status == "migrating" for vm in vms):
                    continue
                found = list(
                    dict.fromkeys(vm.id for vm in candidates(state, cluster, self._backend.random.shuffle))
                )
            self._migrate_first(cluster.id, found)

    def _migrate_first(self, cluster_id: str, vm_ids: Sequence[str]) -> None:
        for vm_id in vm_ids:
            if not self.can_leave(vm_id, cluster_id):
                continue
            try:
                self._migrate(vm_id, _REASON)
            except Rejected:
                continue
            return

    def can_leave(self, vm_id: str, cluster_id: str) -> bool:
        """Return whether the VM is movable, and internal filters leave another host of the cluster.

        The engine asks for hosts of the cluster whose groups it enforces, wherever the VM belongs.
        """
        with self._backend.lock:
            vm = self._backend.state.vms[vm_id]
            if vm.host is None or not vm.movable:
                return False
            request = Request(vm_ids=(vm_id,), blacklist=frozenset({vm.host}), cluster=cluster_id)
            try:
                self._scheduler.validate(request, "migrate")
            except Rejected:
                return False
        return True


def candidates(state: State, cluster: Cluster, shuffle: Shuffle) -> Iterator[Vm]:
    """Give the VMs that violate hard rules, in the engine's order; `shuffle` is for what it shuffles."""
    groups = state.groups_of(cluster.id)
    yield from _off_their_hosts(state, cluster, [group for group in groups if group.hosts_rule.hard])
    yield from _off_their_peers(state, [group for group in groups if group.vms_rule.hard], shuffle)


def _off_their_hosts(state: State, cluster: Cluster, groups: Sequence[AffinityGroup]) -> list[Vm]:
    """Give VMs that violate host rules, those that violate the fewest first (as the engine does)."""
    violations = HashMap[int]()
    rules = [
        (g.hosts_rule.positive, affinity.member_vms(state, g), affinity.member_hosts(state, g))
        for g in groups
    ]
    for label in affinity.legacy_labels(_labels_of(state, cluster), cluster):
        rules.append((True, tuple(state.vms[i] for i in label.vms), frozenset(label.hosts)))
    for positive, vms, hosts in rules:
        for vm in vms:
            if hosts and vm.host is not None and (vm.host in hosts) != positive:
                violations.put(vm.id, 1 + violations.get(vm.id, 0))
    found = sorted((vm_id for vm_id in violations if vm_id is not None), key=lambda i: violations[i])
    return [state.vms[vm_id] for vm_id in found]


def _labels_of(state: State, cluster: Cluster) -> list[AffinityLabel]:
    """Give the labels that a VM or host of the cluster has."""
    inside = {vm.id for vm in state.vms.values() if vm.cluster == cluster.id}
    inside |= {host.id for host in state.hosts_of(cluster.id)}
    return [label for label in state.labels.values() if inside.intersection((*label.vms, *label.hosts))]


def _off_their_peers(state: State, groups: Sequence[AffinityGroup], shuffle: Shuffle) -> Iterator[Vm]:
    """Give VMs that violate VM rules: of the largest group first, minorities and crowds first within it."""
    positive = [[vm.id for vm in affinity.member_vms(state, g)] for g in groups if g.vms_rule.positive]
    sets = [(True, ids) for ids in _unified(positive)]
    for group in groups:
        if not group.vms_rule.positive:
            sets.append((False, tuple(vm.id for vm in affinity.member_vms(state, group))))
    broken = [(together, ids) for together, ids in sets if _is_broken(state, ids, together=together)]
    broken.sort(key=lambda entry: (len(entry[1]), min(map(guid_order, entry[1]))), reverse=True)
    for together, ids in broken:
        yield from _of_group(state, ids, shuffle, together=together)


def _unified(groups: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Merge groups that share VMs, each in the order of the set that the engine makes of its ids.

    Each group makes a new set of the sets that its VMs are in (getUnifiedPositiveAffinityGroups).
    """
    set_of: dict[str, HashMap[None]] = {}
    for ids in groups:
        merged = HashMap[None]()
        for vm_id in ids:
            if set_of.get(vm_id) is not merged:
                for other in [each for each in set_of.get(vm_id, ()) if each is not None] or [vm_id]:
                    merged.put(other, None)
                    set_of[other] = merged
    sets = {id(found): found for found in set_of.values()}
    return [tuple(vm_id for vm_id in found if vm_id is not None) for found in sets.values()]


def _is_broken(state: State, vm_ids: Sequence[str], *, together: bool) -> bool:
    places = [host for vm_id in vm_ids if (host := state.vms[vm_id].host) is not None]
    return len(set(places)) > 1 if together else len(set(places)) < len(places)


def _of_group(state: State, vm_ids: Sequence[str], shuffle: Shuffle, *, together: bool) -> Iterator[Vm]:
    """Give the VMs host by host: the fewest first if they belong together, else the most."""
    by_host = HashMap[list[Vm]]()
    stuck = set()
    for vm in (state.vms[vm_id] for vm_id in vm_ids):
        if vm.host is not None and vm.movable:
            by_host.put(vm.host, [*by_host.get(vm.host, []), vm])
        elif vm.host is not None:
            stuck.add(vm.host)
    buckets = [by_host[host] for host in by_host if host not in stuck]
    if together:
        buckets.sort(key=len)
    else:
        buckets = sorted((bucket for bucket in buckets if len(bucket) > 1), key=len, reverse=True)
    for bucket in buckets:
        shuffle(bucket)
        yield from bucket
