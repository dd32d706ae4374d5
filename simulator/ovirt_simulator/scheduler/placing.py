"""The scheduler: internal filters, then the external ones, then weights and the best rank; and enforcement.

Source: the engine's SchedulingManager (schedule, canSchedule, runFilters, selectBestHost).
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ovirt_placement.model import Host, Snapshot
from ovirt_simulator.core import affinity, messages
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.entities import AffinityGroup, AffinityLabel, Cluster, SchedulingPolicy, Vm
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.core.state import State
from ovirt_simulator.scheduler import filters, weights
from ovirt_simulator.scheduler.external import ExternalUnits, Malformed, MigrateBySystem
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.weights import HashMap, Record, best_host, guid_order

Placed = TypeVar("Placed")
#: What a user hears of an answer that the engine fails on.
_BROKEN = "Internal Engine Error"

#: The engine's own units by their names; filters in its order.
_FILTERS: dict[str, filters.Filter] = {
    "Memory": filters.memory,
    "CPU": filters.cpu,
    "VmAffinityGroups": filters.vm_affinity,
    "VmToHostsAffinityGroups": filters.vm_to_host,
}
_WEIGHTS: dict[str, weights.Weight] = {
    "OptimalForCpuEvenDistribution": weights.even_cpu,
    "OptimalForMemoryEvenDistribution": weights.even_memory,
    "PreferredHosts": weights.preferred_hosts,
    "OptimalForHaReservation": weights.ha_reservation,
    "VmAffinityGroups": weights.vm_affinity,
    "VmToHostsAffinityGroups": weights.vm_to_host,
    "HA": weights.indifferent,
    "CPU for high performance VMs": weights.high_performance,
    "CPU and NUMA pinning compatibility": weights.indifferent,
}


class Scheduler:
    """Finds hosts for VMs. One at a time in each cluster: the engine's per-cluster semaphore.

    The engine's lock is free while the external units are asked: none waits for the semaphore holding it.
    """

    def __init__(self, backend: Backend, external: ExternalUnits) -> None:
        self._backend = backend
        self._external = external
        self._semaphores: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def validate(self, request: Request, action: str) -> tuple[str, ...]:
        """Give the hosts that the internal filters leave: all that validation asks (canSchedule).

        Raises `Rejected`: no host in question (400), or all of them filtered out (409).
        """
        with self._backend.lock:
            return tuple(host.id for host in self._filtered(self._backend.live_snapshot(), request, action))

    def finds(self, request: Request) -> bool:
        """Whether the internal filters leave a host."""
        with suppress(Rejected):
            return bool(self.validate(request, "migrate"))
        return False

    def tries(self, request: Request, place: Callable[[str], object]) -> bool:
        """Whether `schedule` came to its end."""
        with suppress(Rejected):
            self.schedule(request, place)
            return True
        return False

    def schedule(self, request: Request, place: Callable[[str], Placed]) -> Placed:
        """Find the best host, and place the VMs there under the lock before others are scheduled.

        Raises `Rejected`, without messages when no host is left: they stay behind in the validation's list.
        """
        with self._backend.lock:
            cluster = self._cluster(request)
            semaphore = self._semaphores[cluster.id]
        with semaphore:
            chosen = self._choose(request, cluster)
            with self._backend.lock:
                if not self._backend.state.hosts[chosen].up:
                    raise Rejected
                return place(chosen)

    def _choose(self, request: Request, cluster: Cluster) -> str:
        with self._backend.lock:
            snapshot = self._backend.live_snapshot()
            try:
                hosts = self._filtered(snapshot, request, "")
            except Rejected:
                raise Rejected from None
        try:
            hosts = self._external.filter(request, cluster, hosts)
            if not hosts:
                raise Rejected
            if len(hosts) == 1:
                return hosts[0].id
            weighed = self._external.weigh(request, cluster, hosts)
        except Malformed:
            raise messages.bad_parameters(_BROKEN) from None
        return self._best(snapshot, request, cluster, hosts, weighed)

    def _filtered(self, snapshot: Snapshot, request: Request, action: str) -> tuple[Host, ...]:
        hosts = request.candidates(snapshot)
        if not hosts:
            none = "There are no hosts to use. Check that the cluster contains at least one host in Up state."
            raise messages.bad_parameters(none)
        enabled = {self._own_name(entry.unit) for entry in self._policy(self._cluster(request)).filters}
        if request.without_vm_affinity:
            enabled.discard("VmAffinityGroups")
        vms = request.vms(snapshot)
        found: list[tuple[str, str, str]] = []
        overloaded = partial(filters.cpu_overloaded, self._backend.state, self._backend.now)
        known: dict[str, filters.Filter] = {**_FILTERS, "CPUOverloaded": overloaded}
        asked = [(name, refuse) for name, refuse in known.items() if name in enabled]
        # Every policy must have the first.
        for name, refuse in [("PinToHost", filters.pinned), *asked]:
            refused = refuse(snapshot, vms, hosts)
            found += [(host.name, name, refused[host.id]) for host in hosts if refused.get(host.id)]
            hosts = tuple(host for host in hosts if host.id not in refused)
            if not hosts:
                raise messages.all_hosts_filtered(action, found)
        return hosts

    def _best(
        self,
        snapshot: Snapshot,
        request: Request,
        cluster: Cluster,
        hosts: Sequence[Host],
        external: Sequence[Record],
    ) -> str:
        """Take the best host by the engine's own weights and the external ones; without any, the first.

        Raises `Rejected` where the external ones choose a host that is not there.
        """
        entries, vms = self._policy(cluster).weights, request.vms(snapshot)
        own = [
            Record(entry.unit, host_id, weight)
            for entry in entries
            if (name := self._own_name(entry.unit)) in _WEIGHTS
            for host_id, weight in _WEIGHTS[name](snapshot, vms, hosts).items()
        ]
        factors = {entry.unit: entry.factor for entry in entries}
        ids = [host.id for host in hosts]
        best = best_host(ids, [*own, *external], factors) or ids[0]
        if best not in ids:
            raise messages.bad_parameters(_BROKEN)
        return best

    def _cluster(self, request: Request) -> Cluster:
        state = self._backend.state
        return state.clusters[request.cluster or state.vms[request.vm_ids[0]].cluster]

    def _own_name(self, unit_id: str) -> str:
        """Give the name of a unit of the engine's own; nothing of an external one."""
        unit = self._backend.state.units[unit_id]
        return unit.name if unit.internal else ""

    def _policy(self, cluster: Cluster) -> SchedulingPolicy:
        return self._backend.state.policies[cluster.policy_id]


# -- The engine's own affinity enforcement: once a minute, one VM a cluster moves towards its hard rules.
# Source: its AffinityRulesEnforcementManager and AffinityRulesEnforcer. Soft groups are left out: they need a
# second scheduling.
_REASON = "Affinity rules enforcement"
#: Puts VMs into any order, in place.
Shuffle = Callable[[list[Vm]], None]


@dataclass
class AffinityEnforcement:
    """Finds VMs that violate a hard rule, and migrates the first that has anywhere to go."""

    _backend: Backend
    _scheduler: Scheduler
    _migrate: MigrateBySystem

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
                found = [vm.id for vm in candidates(state, cluster, self._backend.random.shuffle)]
            any(self._moves(vm_id, cluster.id) for vm_id in dict.fromkeys(found))

    def _moves(self, vm_id: str, cluster_id: str) -> bool:
        if self.can_leave(vm_id, cluster_id):
            with suppress(Rejected):
                self._migrate(vm_id, _REASON, ())
                return True
        return False

    def can_leave(self, vm_id: str, cluster_id: str) -> bool:
        """Return whether the VM is movable, and internal filters leave another host of the cluster.

        The engine asks for hosts of the cluster whose groups it enforces, wherever the VM belongs.
        """
        with self._backend.lock:
            vm = self._backend.state.vms[vm_id]
            if vm.host is None or not vm.movable:
                return False
            request = Request(vm_ids=(vm_id,), blacklist=frozenset({vm.host}), cluster=cluster_id)
            return self._scheduler.finds(request)


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
    inside = {vm.id for vm in state.vms.values() if vm.cluster == cluster.id}
    inside |= {host.id for host in state.hosts_of(cluster.id)}
    return [label for label in state.labels.values() if inside.intersection((*label.vms, *label.hosts))]


def _off_their_peers(state: State, groups: Sequence[AffinityGroup], shuffle: Shuffle) -> Iterator[Vm]:
    """Give VMs that violate VM rules: of the largest group first, minorities and crowds first within it."""
    positive = [[vm.id for vm in affinity.member_vms(state, g)] for g in groups if g.vms_rule.positive]
    sets = [(True, ids) for ids in _unified(positive)]
    for group in [group for group in groups if not group.vms_rule.positive]:
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
    buckets = [by_host[i] for i in by_host if i not in stuck and (together or len(by_host[i]) > 1)]
    for bucket in sorted(buckets, key=len, reverse=not together):
        shuffle(bucket)
        yield from bucket
