"""The engine's database: every record by id; and who takes what of a host, whose figures follow the VMs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ovirt_placement import model
from ovirt_simulator.core import entities

#: The status of a VM whose host has been reported to start it.
_TO_COME = "wait_for_launch"


class _Base(msgspec.Struct, frozen=True):
    """What a host has and uses for itself, by its first figures and VMs; None where unknown."""

    capacity_mb: int
    own_mb: float | None
    own_cores: float | None
    own_load: float | None
    huge_pages: dict[int, int]


def used_mb(vm: entities.Vm) -> float:
    """Memory that the VM really uses; one that is still to be launched uses none."""
    if vm.status == _TO_COME:
        return 0.0
    return vm.memory_mb * (vm.usage_mem_percent or 0) / 100


def used_cores(vm: entities.Vm) -> float:
    """Cores that the VM keeps busy; one that is still to be launched keeps none."""
    if vm.status == _TO_COME:
        return 0.0
    return vm.vcpus * (vm.usage_cpu_percent or 0) / 100


def _places(vm: entities.Vm | None) -> set[str]:
    return set() if vm is None else {place for place in (vm.host, vm.migrating_to) if place is not None}


class State:
    """All records. Only its methods change it; the caller holds the engine's lock.

    Once calibrated, a host's figures follow the VMs there and, as `free_mb`, those on their way to it.
    """

    def __init__(self, *, counts_late: bool = False) -> None:
        """With `counts_late` hosts report by whom `count_memory` found last, and by who is on the way."""
        self.data_centers: dict[str, entities.DataCenter] = {}
        self.clusters: dict[str, entities.Cluster] = {}
        self.hosts: dict[str, entities.Host] = {}
        self.vms: dict[str, entities.Vm] = {}
        self.groups: dict[str, entities.AffinityGroup] = {}
        self.labels: dict[str, entities.AffinityLabel] = {}
        self.policies: dict[str, entities.SchedulingPolicy] = {}
        self.units: dict[str, entities.PolicyUnit] = {}
        self.tags: dict[str, entities.Tag] = {}
        self.roles: dict[str, entities.Role] = dict(entities.ROLES)
        self.permissions: dict[str, entities.Permission] = {}
        self.networks: dict[str, model.Network] = {}
        self.vnic_profiles: dict[str, model.VnicProfile] = {}
        #: Starts that are decided and do not show yet, by VM id.
        self.pending: dict[str, model.Pending] = {}
        #: The state file, for what an engine knows nothing of, on the way back: placement keys, rules.
        self.loaded: model.Snapshot
        #: Grows with every change.
        self.revision = 0
        self._bases: dict[str, _Base] = {}
        #: By host: the VMs there, and the memory that is taken by each that is there or on its way.
        self._there: dict[str, dict[str, entities.Vm]] = defaultdict(dict)
        self._taken: dict[str, dict[str, int]] = defaultdict(dict)
        self._counts_late = counts_late
        #: By host, the memory of the VMs that were there when they were last counted.
        self._counted: dict[str, int] = {}

    def calibrate(self) -> None:
        """Take the present figures of all hosts as what their present VMs leave over."""
        for host in self.hosts.values():
            vms = self.vms_on(host.id)
            busy, taken = sum(map(used_cores, vms)), huge_pages(vms)
            free, percent, load = host.memory_free_mb, host.cpu_percent, host.load_average_5m
            self._bases[host.id] = _Base(
                capacity_mb=host.free_mb + sum(self._taken[host.id].values()),
                own_mb=None if free is None else host.memory_mb - free - sum(map(used_mb, vms)),
                own_cores=None if percent is None else percent / 100 * host.cores - busy,
                own_load=None if load is None else load - busy,
                huge_pages={size: count + taken[size] for size, count in host.free_huge_pages.items()},
            )
        self.count_memory()

    def count_memory(self) -> None:
        """Count the VMs that run on each host, as refreshCommitedMemory does from time to time."""
        self.revision += 1
        for host_id in self.hosts if self._counts_late else ():
            taken = self._taken[host_id].items()
            self._counted[host_id] = sum(mb for vm_id, mb in taken if not self._is_pending(vm_id, host_id))
        self._measure(set(self._counted))

    def _is_pending(self, vm_id: str, host_id: str) -> bool:
        return vm_id not in self._there[host_id] or self.vms[vm_id].status == _TO_COME

    def put_cluster(self, cluster: entities.Cluster) -> None:
        """Add or change a cluster, and let its hosts hand out memory as it says from now on."""
        before = self.clusters.get(cluster.id, cluster)
        self.put(self.clusters, cluster)
        percent = cluster.memory_overcommit_percent - before.memory_overcommit_percent
        for host in self.hosts_of(cluster.id) if percent else ():
            if base := self._bases.get(host.id):
                lent = host.memory_mb * percent // 100
                self._bases[host.id] = replace(base, capacity_mb=base.capacity_mb + lent)
            self._measure({host.id})

    def put(self, table: dict[str, Any], record: Any) -> None:
        """Add or change a record of any table but hosts' figures and VMs, which have methods of their own."""
        self.revision += 1
        table[record.id] = record

    def drop(self, table: dict[str, Any], record_id: str) -> None:
        self.revision += 1
        del table[record_id]

    def put_vm(self, vm: entities.Vm) -> None:
        """Add or change a VM, and let the hosts that it leaves and takes follow."""
        before = self.vms.get(vm.id)
        self.put(self.vms, vm)
        if before is not None and before.host is not None and before.host != vm.host:
            del self._there[before.host][vm.id]
        if vm.host is not None:
            self._there[vm.host][vm.id] = vm
        self._claim_memory(before, vm)

    def drop_vm(self, vm_id: str) -> None:
        """Forget a VM that is down."""
        self.drop_pending(vm_id)
        self.drop(self.vms, vm_id)

    def put_pending(self, pending: model.Pending) -> None:
        """Remember a start that is decided."""
        vm = self.vms[pending.vm]
        self.pending[vm.id] = pending
        self.revision += 1
        self._claim_memory(vm, vm)

    def drop_pending(self, vm_id: str) -> None:
        """Forget a start: it shows by now, or came to nothing."""
        pending = self.pending.pop(vm_id, None)
        if pending is not None:
            self.revision += 1
            if pending.host not in _places(self.vms[vm_id]):
                self._taken[pending.host].pop(vm_id, None)
            self._measure({pending.host})

    def vms_on(self, host_id: str) -> tuple[entities.Vm, ...]:
        """VMs that run on the host; what is on its way there is not among them."""
        return tuple(self._there[host_id].values())

    def incoming(self, host_id: str) -> tuple[entities.Vm, ...]:
        """VMs that are on their way to the host: started or migrating."""
        return tuple(self.vms[vm_id] for vm_id in self._taken[host_id] if vm_id not in self._there[host_id])

    def hosts_of(self, cluster_id: str) -> tuple[entities.Host, ...]:
        return tuple(host for host in self.hosts.values() if host.cluster == cluster_id)

    def groups_of(self, cluster_id: str) -> tuple[entities.AffinityGroup, ...]:
        return tuple(group for group in self.groups.values() if group.cluster == cluster_id)

    def live_snapshot(self) -> model.Snapshot:
        """Give the present state for the scheduler: the records as they are, which is quick."""
        return model.Snapshot(
            clusters=tuple(self.clusters.values()),
            hosts=tuple(map(entities.Host.as_reported, self.hosts.values())),
            vms=tuple(self.vms.values()),
            affinity_groups=tuple(self.groups.values()),
            affinity_labels=tuple(self.labels.values()),
            pending=tuple(self.pending.values()),
        )

    def _claim_memory(self, before: entities.Vm | None, vm: entities.Vm) -> None:
        """Let a VM take memory where it is, is on its way to or is to start, and nowhere else."""
        pending, takes = self.pending.get(vm.id), dict.fromkeys(_places(vm), required_mb(vm))
        if pending is not None and pending.host not in takes:
            memory_mb = vm.memory_mb if pending.memory_mb is None else pending.memory_mb
            takes[pending.host] = memory_mb + overhead_mb(vm)
        left = {host for host in _places(before) - set(takes) if vm.id in self._taken[host]}
        for host in left:
            del self._taken[host][vm.id]
        for host, memory_mb in takes.items():
            self._taken[host][vm.id] = memory_mb
        self._measure(left | set(takes))

    def _measure(self, host_ids: set[str]) -> None:
        """Give hosts the figures that their VMs leave over; figures that one never had stay away."""
        for host_id in host_ids:
            host, base = self.hosts[host_id], self._bases.get(host_id)
            if base is None:
                continue
            vms = self.vms_on(host_id)
            busy, taken = sum(map(used_cores, vms)), huge_pages(vms)
            figures: dict[str, float] = {}
            if base.own_mb is not None:
                used = base.own_mb + sum(map(used_mb, vms))
                figures["memory_free_mb"] = round(min(max(host.memory_mb - used, 0), host.memory_mb))
            if base.own_cores is not None:
                percent = (base.own_cores + busy) / host.cores * 100
                figures["cpu_percent"] = round(min(max(percent, 0.0), 100.0), 6)
            if base.own_load is not None:
                figures["load_average_5m"] = round(max(base.own_load + busy, 0.0), 6)
            taken_mb = self._taken[host_id]
            if self._counts_late:
                pending = (mb for vm_id, mb in taken_mb.items() if self._is_pending(vm_id, host_id))
                left = base.capacity_mb - self._counted.get(host_id, 0) - sum(pending)
                figures["reported_mb"] = max(0, left)
            self.hosts[host_id] = replace(
                host,
                free_mb=max(0, base.capacity_mb - sum(taken_mb.values())),
                free_huge_pages={size: max(0, n - taken[size]) for size, n in base.huge_pages.items()},
                **figures,
            )


# -- What a VM takes of a host's memory: its own, and what the engine reckons with besides. Source: the
# engine's VmOverheadCalculatorImpl and HugePageUtils.
_KIB_IN_MIB = 1024


def required_mb(vm: model.Vm) -> int:
    """Give all that the VM takes of what a host may hand out, in MiB, huge pages or not."""
    return vm.memory_mb + overhead_mb(vm)


def required_without_huge_pages_mb(vm: model.Vm) -> int:
    """Give what the VM takes of a host's usual pages, in MiB."""
    return own_without_huge_pages_mb(vm) + overhead_mb(vm)


def own_without_huge_pages_mb(vm: model.Vm) -> int:
    """Give the VM's own memory, in MiB, or nothing where huge pages hold it."""
    return 0 if _page_kib(vm) else vm.memory_mb


def overhead_mb(vm: model.Vm) -> int:
    """Give what the VM may come to take besides its own memory, in MiB."""
    return static_overhead_mb(vm) + 8 * vm.vcpus + 8 * vm.io_threads + vm.video_mb


def static_overhead_mb(vm: model.Vm) -> int:
    """Give what the VM takes besides its own memory as soon as it starts, in MiB: page tables and QEMU."""
    if not vm.architecture.startswith("ppc"):
        return 64 + vm.memory_mb // 512
    page_table_for = 1
    while page_table_for < (vm.max_memory_mb or vm.memory_mb):
        page_table_for *= 2
    return 100 + page_table_for // 64


def huge_pages(vms: Iterable[model.Vm]) -> Counter[int]:
    """Count the huge pages that the VMs need together, by their size in KiB."""
    needed: Counter[int] = Counter()
    for vm in vms:
        size = _page_kib(vm)
        if size:
            needed[size] += -(-vm.memory_mb * _KIB_IN_MIB // size)
    return needed


def pages_mb(pages: Mapping[int, int]) -> int:
    """Give the memory of huge pages, in MiB, rounded up."""
    return -(-sum(size * count for size, count in pages.items()) // _KIB_IN_MIB)


def _page_kib(vm: model.Vm) -> int:
    """Give the size of the VM's huge pages; 0 for none, as for what is no number."""
    try:
        return max(0, int(vm.custom_properties.get("hugepages", "")))
    except ValueError:
        return 0
