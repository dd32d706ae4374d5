"""The engine's own filters: which hosts they refuse, and why.

Source: the engine's PinToHostPolicyUnit, VmAffinityFilterPolicyUnit, VmToHostAffinityFilterPolicyUnit,
MemoryPolicyUnit, SlaValidator, CPUPolicyUnit, CpuOverloadPolicyUnit, HostCpuLoadHelper, SchedulingManager
(updateHostSchedulingStats) and PendingResourceManager, as they behave but without their crashes; the reasons
stand in AppErrors.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Host, Snapshot, Vm
from ovirt_simulator.core.affinity import legacy_labels
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.state import (
    State,
    huge_pages,
    own_without_huge_pages_mb,
    pages_mb,
    required_without_huge_pages_mb,
    static_overhead_mb,
)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """VMs to place together on one host: a single one, or those that hard positive groups tie together."""

    vm_ids: tuple[str, ...]
    #: Hosts that are out of the question: the source of a migration, targets that failed before.
    blacklist: frozenset[str] = frozenset()
    #: The only hosts in question; empty means all.
    whitelist: frozenset[str] = frozenset()
    #: The id of the cluster whose hosts are in question; None for that of the first VM.
    cluster: str | None = None
    #: The engine's ignoreHardVmToVmAffinity: the filter of rules between VMs is not asked.
    without_vm_affinity: bool = False

    def vms(self, snapshot: Snapshot) -> tuple[Vm, ...]:
        return tuple(snapshot.vm_by_id[vm_id] for vm_id in self.vm_ids)

    def candidates(self, snapshot: Snapshot) -> tuple[Host, ...]:
        """Give the cluster's hosts that are up and in question, by id (getVdsForClusterWithStatus)."""
        cluster = self.cluster or snapshot.vm_by_id[self.vm_ids[0]].cluster
        hosts = (
            host
            for host in snapshot.hosts_of_cluster.get(cluster, ())
            if host.up and host.id not in self.blacklist and (not self.whitelist or host.id in self.whitelist)
        )
        return tuple(sorted(hosts, key=attrgetter("id")))


#: Reasons by host id: the hosts that a filter refuses; an empty one where the engine gives none.
Refusals = dict[str, str]
Filter = Callable[[Snapshot, Sequence[Vm], Sequence[Host]], Refusals]


#: What a VM is called that runs on a host and does not yet power up there.
_STARTING = {"wait_for_launch", "restoring_state"}


def peer_places(
    snapshot: Snapshot, group: AffinityGroup, vms: Sequence[Vm], scheduled: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Give the hosts of the group's other members, by VM id: where each is on its way to, else where it runs.

    One that runs counts only if it is of the cluster of the first of the VMs (getAllRunningByCluster); one
    on its way counts wherever it belongs.
    """
    places = {}
    for peer in (snapshot.vm_by_id[i] for i in snapshot.group_vms[group.id] if i not in scheduled):
        there = () if peer.host is None or peer.cluster != vms[0].cluster else (peer.host,)
        places[peer.id] = snapshot.pending_hosts.get(peer.id, there)
    return places


def coming_to(snapshot: Snapshot, host: Host) -> list[Vm]:
    """Give the VMs whose resources are pending on the host: they migrate there, or are yet to power up."""
    coming = [snapshot.vm_by_id[vm_id] for vm_id, hosts in snapshot.pending_hosts.items() if host.id in hosts]
    known = {vm.id for vm in coming}
    there = snapshot.vms_of_host.get(host.id, ())
    return coming + [vm for vm in there if vm.status in _STARTING and vm.id not in known]


def cpus(host: Host, snapshot: Snapshot) -> int:
    """Give the host's CPUs: its threads where the cluster counts them as cores, else its cores."""
    threads = snapshot.cluster_by_id[host.cluster].count_threads_as_cores
    return host.threads if threads and host.threads is not None else host.cores


def memory(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts without the memory of the VMs that do not run there; who is paused needs none."""
    refusals = {}
    for host in hosts:
        arriving = [vm for vm in vms if vm.status != "paused" and vm.host != host.id]
        available = _too_little(snapshot, host, arriving) if arriving else None
        if available is not None:
            refusals[host.id] = f"its available memory is too low ({available} MB) to run the VM"
    return refusals


def _too_little(snapshot: Snapshot, host: Host, vms: Sequence[Vm]) -> int | None:
    """Give the available memory in MiB that does not suffice, physical with swap or to hand out; else None.

    The engine refuses a host that does not report its free memory. A state file need not have it: then it is
    not looked at.
    """
    coming = coming_to(snapshot, host)
    to_allocate = pages_mb(_missing_pages(host, vms, coming))
    if host.memory_free_mb is not None:
        swap = host.swap_free_mb or 0
        needed = sum(own_without_huge_pages_mb(vm) + static_overhead_mb(vm) for vm in vms)
        left = host.memory_free_mb - sum(map(static_overhead_mb, coming)) - to_allocate
        if left < 0 or needed > left + swap:
            return host.memory_free_mb + swap
    total = sum(map(required_without_huge_pages_mb, vms)) + to_allocate
    return host.free_mb if total > host.free_mb else None


def _missing_pages(host: Host, vms: Sequence[Vm], coming: Sequence[Vm]) -> Mapping[int, int]:
    """Give the huge pages, by size, that the host has to make first.

    Of those that are free it deducts pending ones, whose count the engine looks up under the number of free
    pages where it means their size (freeHugePagesOnHost).
    """
    pending = huge_pages(coming)
    free = {size: max(0, count - pending[count]) for size, count in host.free_huge_pages.items()}
    needed = huge_pages(vms)
    return {size: max(0, count - free.get(size, 0)) for size, count in needed.items()}


def cpu(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts with fewer CPUs than a VM has cores, be it to come, on its way there or there already.

    CPUs that are VMs' own are counted off, by their number alone: not how virtual sockets lie on the host's.
    """
    refusals = {}
    for host in hosts:
        all_there = {vm.id: vm for vm in (*vms, *snapshot.vms_of_host.get(host.id, ()))}
        all_there |= {vm.id: vm for vm in coming_to(snapshot, host)}
        left = cpus(host, snapshot) - sum(_own_cpus(vm, host, snapshot) for vm in all_there.values())
        shared = [_cores(vm) for vm in all_there.values() if vm.cpu_pinning not in _OWN_CPUS]
        if max(shared, default=0) > left:
            refusals[host.id] = "it does not have enough cores"
    return refusals


#: Policies by which a VM has CPUs for itself: by threads, or by whole cores.
_OWN_CPUS = {"dedicated", "isolate_threads"}


def _own_cpus(vm: Vm, host: Host, snapshot: Snapshot) -> int:
    """Give how many of what `cpus` counts are the VM's own."""
    if vm.cpu_pinning not in _OWN_CPUS:
        return 0
    a_core = max(1, (host.threads or host.cores) // max(1, host.cores))
    threads = vm.vcpus * (a_core if vm.cpu_pinning == "isolate_threads" else 1)
    return threads if cpus(host, snapshot) != host.cores else threads // a_core


def _cores(vm: Vm) -> int:
    return vm.vcpus // max(1, vm.threads_per_core)


#: The engine's HighUtilizationForEvenlyDistribute and LowUtilizationForEvenlyDistribute: from the one, and up
#: to the other, it notes a time; its HighUtilizationForScheduling: above it, it refuses.
_BUSY_PERCENT, _IDLE_PERCENT, _TOO_BUSY_PERCENT = 75, 0, 90
#: Its CpuOverCommitDurationMinutes.
_MINUTES = 2
#: Percent of a CPU that managing storage needs.
_SPM_PERCENT = 10


def note_load(backend: Backend) -> None:
    """Note since when hosts are busy, or idle, as the engine does whenever it has new statistics.

    One that is neither any more has no time.
    """
    with backend.lock:
        state, now = backend.state, backend.now
        for host in tuple(state.hosts.values()):
            if not host.up or host.cpu_percent is None:
                continue
            since = (host.overloaded_since or now) if _is_noted(state, host) else None
            if since != host.overloaded_since:
                state.put(state.hosts, replace(host, overloaded_since=since))


def _is_noted(state: State, host: Host) -> bool:
    properties = state.clusters[host.cluster].scheduling_properties
    load = _load(host, host.cores)
    busy = _number(properties, "HighUtilization", _BUSY_PERCENT)
    return load >= busy or load <= _number(properties, "LowUtilization", _IDLE_PERCENT)


def cpu_overloaded(
    state: State, now: datetime, snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]
) -> Refusals:
    """Refuse hosts that are too busy, for as long as the policy says by now."""
    refusals = {}
    for host in hosts:
        if host.measured and host.cpu_percent is None:
            refusals[host.id] = ""
            continue
        properties = snapshot.cluster_by_id[host.cluster].scheduling_properties
        lasting = timedelta(minutes=_number(properties, "CpuOverCommitDurationMinutes", _MINUTES))
        most = _number(properties, "HighUtilization", _TOO_BUSY_PERCENT)
        since = state.hosts[host.id].overloaded_since
        if _load(host, cpus(host, snapshot)) > most and since is not None and now - since >= lasting:
            refusals[host.id] = "its CPU is too loaded"
    return refusals


def _load(host: Host, shared_by: int) -> int:
    """Give what is in use, in percent of this many CPUs, rounded up."""
    if shared_by == 0:
        return 0
    return -(-(int(host.cpu_percent or 0) * shared_by + _SPM_PERCENT * host.spm) // shared_by)


def _number(properties: Mapping[str, str], name: str, usual: int) -> int:
    try:
        return int(properties.get(name, usual))
    except ValueError:
        return usual


def pinned(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse the hosts that a VM which may not migrate is not pinned to."""
    bound = [set(vm.pinned_hosts) for vm in vms if vm.pinned_hosts and not vm.migratable]
    return {
        host.id: "it is not among the hosts that the VM is pinned to"
        for host in hosts
        if any(host.id not in allowed for allowed in bound)
    }


#: The engine loses the names of the groups.
_MATCHED_NEGATIVE = "it matched negative affinity rules "
_MISSED_POSITIVE = "it did not match positive affinity rules "


def vm_affinity(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts by hard VM-to-VM affinity; negative always beats positive."""
    groups = {g.id: g for vm in vms for g in snapshot.groups_of_vm.get(vm.id, ()) if g.vms_rule.hard}
    scheduled = {vm.id for vm in vms}
    allowed: set[str] = set()
    hostile: set[str] = set()
    for group in groups.values():
        if not group.vms_rule.positive and len(scheduled & set(snapshot.group_vms[group.id])) > 1:
            return {host.id: _MATCHED_NEGATIVE for host in hosts}
        for places in peer_places(snapshot, group, vms, scheduled).values():
            (allowed if group.vms_rule.positive else hostile).update(places)
    refusals = {}
    for host in hosts:
        if host.id in hostile:
            refusals[host.id] = _MATCHED_NEGATIVE
        elif allowed and host.id not in allowed:
            refusals[host.id] = _MISSED_POSITIVE
    return refusals


def vm_to_host(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts by hard VM-to-host affinity; positive groups intersect, an empty one refuses all.

    Labels count as groups by the cluster of the hosts, of which there must be one, not by that of the VMs.
    """
    refusals: Refusals = {}
    cluster = snapshot.cluster_by_id[hosts[0].cluster]
    legacy = legacy_labels(snapshot.affinity_labels, cluster)
    for vm in vms:
        groups = [group for group in snapshot.groups_of_vm.get(vm.id, ()) if group.hosts_rule.hard]
        labels = [label for label in legacy if vm.id in label.vms]
        for host in hosts:
            wrong = {
                group.hosts_rule.positive
                for group in groups
                if (host.id in snapshot.group_hosts[group.id]) != group.hosts_rule.positive
            }
            if False in wrong:
                refusals.setdefault(host.id, _MATCHED_NEGATIVE)
            elif wrong or any(host.id not in label.hosts for label in labels):
                refusals.setdefault(host.id, _MISSED_POSITIVE)
    return refusals
