"""The engine's database: every record by id; and who takes what of a host, whose figures follow the VMs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ovirt_placement import model
from ovirt_simulator.core.entities import (
    ROLES,
    AffinityGroup,
    AffinityLabel,
    Cluster,
    DataCenter,
    Host,
    Permission,
    PolicyUnit,
    Role,
    SchedulingPolicy,
    Tag,
    Vm,
)

#: The status of a VM whose host has been reported to start it.
_TO_COME = "wait_for_launch"


class Occupancy:
    """The VMs on each host and on their way to it, and what they leave over.

    What a host has for the scheduler, and what it uses for itself, is taken from its first figures and the
    VMs it had then; from there on both follow the VMs. VMs on their way are deducted from `free_mb` too. It
    is never less than nothing.
    """

    def __init__(self) -> None:
        self._vms: dict[str, dict[str, Vm]] = defaultdict(dict)
        self._taken: dict[str, dict[str, int]] = defaultdict(dict)
        self._capacity_mb: dict[str, int] = {}
        self._own_mb: dict[str, float] = {}
        self._own_cores: dict[str, float] = {}
        self._own_load: dict[str, float] = {}
        self._huge_pages: dict[str, dict[int, int]] = {}

    def calibrate(self, host: Host) -> None:
        """Take the host's present figures as what its present VMs leave over."""
        vms = self._vms[host.id].values()
        self._capacity_mb[host.id] = host.free_mb + sum(self._taken[host.id].values())
        if host.memory_free_mb is not None:
            self._own_mb[host.id] = host.memory_mb - host.memory_free_mb - sum(map(used_mb, vms))
        if host.cpu_percent is not None:
            self._own_cores[host.id] = host.cpu_percent / 100 * host.cores - sum(map(used_cores, vms))
        if host.load_average_5m is not None:
            self._own_load[host.id] = host.load_average_5m - sum(map(used_cores, vms))
        taken = huge_pages(vms)
        self._huge_pages[host.id] = {size: free + taken[size] for size, free in host.free_huge_pages.items()}

    def lend(self, host: Host, percent: int) -> None:
        """Let the host hand out more, or less, by a share of its memory: the cluster's over-commitment."""
        if host.id in self._capacity_mb:
            self._capacity_mb[host.id] += host.memory_mb * percent // 100

    def move(self, before: Vm | None, vm: Vm, pending: model.Pending | None) -> set[str]:
        """Follow a VM to its new place, and name the hosts whose figures change."""
        if before is not None and before.host is not None and before.host != vm.host:
            del self._vms[before.host][vm.id]
        if vm.host is not None:
            self._vms[vm.host][vm.id] = vm
        now = _takes(vm, pending)
        places = set(now) | {host for host in _places(before) if vm.id in self._taken[host]}
        for host in places:
            if host in now:
                self._taken[host][vm.id] = now[host]
            else:
                del self._taken[host][vm.id]
        return places

    def release(self, pending: model.Pending, vm: Vm) -> None:
        """Give back what a start that is no longer pending took."""
        if pending.host not in _places(vm):
            self._taken[pending.host].pop(vm.id, None)

    def vms_on(self, host_id: str) -> tuple[Vm, ...]:
        return tuple(self._vms[host_id].values())

    def incoming(self, host_id: str) -> tuple[str, ...]:
        """Ids of VMs that are on their way to the host."""
        return tuple(vm_id for vm_id in self._taken[host_id] if vm_id not in self._vms[host_id])

    def measured(self, host: Host) -> Host:
        """Give the host with the figures that its VMs leave over; figures it never had stay away."""
        if host.id not in self._capacity_mb:
            return host
        vms = self._vms[host.id].values()
        free_mb = max(0, self._capacity_mb[host.id] - sum(self._taken[host.id].values()))
        figures: dict[str, float] = {}
        if host.id in self._own_mb:
            used = self._own_mb[host.id] + sum(map(used_mb, vms))
            figures["memory_free_mb"] = round(min(max(host.memory_mb - used, 0), host.memory_mb))
        busy = sum(map(used_cores, vms))
        if host.id in self._own_cores:
            cores = self._own_cores[host.id] + busy
            figures["cpu_percent"] = round(min(max(cores / host.cores * 100, 0.0), 100.0), 6)
        if host.id in self._own_load:
            figures["load_average_5m"] = round(max(self._own_load[host.id] + busy, 0.0), 6)
        return replace(host, free_mb=free_mb, free_huge_pages=self._free_huge_pages(host), **figures)

    def _free_huge_pages(self, host: Host) -> dict[int, int]:
        taken = huge_pages(self._vms[host.id].values())
        return {size: max(0, count - taken[size]) for size, count in self._huge_pages[host.id].items()}


def used_mb(vm: Vm) -> float:
    """Memory that the VM really uses; one that is still to be launched uses none."""
    if vm.status == _TO_COME:
        return 0.0
    return vm.memory_mb * (vm.usage_mem_percent or 0) / 100


def used_cores(vm: Vm) -> float:
    """Cores that the VM keeps busy; one that is still to be launched keeps none."""
    if vm.status == _TO_COME:
        return 0.0
    return vm.vcpus * (vm.usage_cpu_percent or 0) / 100


def _places(vm: Vm | None) -> set[str]:
    return set() if vm is None else {place for place in (vm.host, vm.migrating_to) if place is not None}


def _takes(vm: Vm, pending: model.Pending | None) -> dict[str, int]:
    takes = dict.fromkeys(_places(vm), required_mb(vm))
    if pending is not None and pending.host not in takes:
        memory_mb = vm.memory_mb if pending.memory_mb is None else pending.memory_mb
        takes[pending.host] = memory_mb + overhead_mb(vm)
    return takes


class State:
    """All records. Only its methods change it; the caller holds the engine's lock."""

    def __init__(self) -> None:
        self.data_centers: dict[str, DataCenter] = {}
        self.clusters: dict[str, Cluster] = {}
        self.hosts: dict[str, Host] = {}
        self.vms: dict[str, Vm] = {}
        self.groups: dict[str, AffinityGroup] = {}
        self.labels: dict[str, AffinityLabel] = {}
        self.policies: dict[str, SchedulingPolicy] = {}
        self.units: dict[str, PolicyUnit] = {}
        self.tags: dict[str, Tag] = {}
        self.roles: dict[str, Role] = dict(ROLES)
        self.permissions: dict[str, Permission] = {}
        self.networks: dict[str, model.Network] = {}
        self.vnic_profiles: dict[str, model.VnicProfile] = {}
        #: Starts that are decided and do not show yet, by VM id.
        self.pending: dict[str, model.Pending] = {}
        #: The state file, for what an engine knows nothing of, on the way back: placement keys, rules.
        self.loaded: model.Snapshot
        #: Grows with every change.
        self.revision = 0
        self._occupancy = Occupancy()

    def calibrate(self) -> None:
        """Take the present figures of all hosts as what their present VMs leave over."""
        for host in self.hosts.values():
            self._occupancy.calibrate(host)

    def put_cluster(self, cluster: Cluster) -> None:
        """Add or change a cluster, and let its hosts hand out memory as it says from now on."""
        before = self.clusters.get(cluster.id, cluster)
        self.put(self.clusters, cluster)
        percent = cluster.memory_overcommit_percent - before.memory_overcommit_percent
        for host in self.hosts_of(cluster.id) if percent else ():
            self._occupancy.lend(host, percent)
            self._measure({host.id})

    def put(self, table: dict[str, Any], record: Any) -> None:
        """Add or change a record of any table but hosts' figures and VMs, which have methods of their own."""
        self.revision += 1
        table[record.id] = record

    def drop(self, table: dict[str, Any], record_id: str) -> None:
        self.revision += 1
        del table[record_id]

    def put_vm(self, vm: Vm) -> None:
        """Add or change a VM, and let the hosts that it leaves and takes follow."""
        before = self.vms.get(vm.id)
        self.put(self.vms, vm)
        self._measure(self._occupancy.move(before, vm, self.pending.get(vm.id)))

    def drop_vm(self, vm_id: str) -> None:
        """Forget a VM that is down."""
        self.drop_pending(vm_id)
        self.drop(self.vms, vm_id)

    def put_pending(self, pending: model.Pending) -> None:
        """Remember a start that is decided."""
        vm = self.vms[pending.vm]
        self.pending[vm.id] = pending
        self.revision += 1
        self._measure(self._occupancy.move(vm, vm, pending))

    def drop_pending(self, vm_id: str) -> None:
        """Forget a start: it shows by now, or came to nothing."""
        pending = self.pending.pop(vm_id, None)
        if pending is not None:
            self.revision += 1
            self._occupancy.release(pending, self.vms[vm_id])
            self._measure({pending.host})

    def vms_on(self, host_id: str) -> tuple[Vm, ...]:
        """VMs that run on the host; what is on its way there is not among them."""
        return self._occupancy.vms_on(host_id)

    def incoming(self, host_id: str) -> tuple[Vm, ...]:
        """VMs that are on their way to the host: started or migrating."""
        return tuple(self.vms[vm_id] for vm_id in self._occupancy.incoming(host_id))

    def hosts_of(self, cluster_id: str) -> tuple[Host, ...]:
        return tuple(host for host in self.hosts.values() if host.cluster == cluster_id)

    def groups_of(self, cluster_id: str) -> tuple[AffinityGroup, ...]:
        return tuple(group for group in self.groups.values() if group.cluster == cluster_id)

    def permissions_on(self, vm: Vm) -> tuple[Permission, ...]:
        """Permissions on the VM itself, without those that its cluster hands down."""
        return tuple(found for found in self.permissions.values() if found.vm == vm.id)

    def live_snapshot(self) -> model.Snapshot:
        """Give the present state for the scheduler: the records as they are, which is quick."""
        return model.Snapshot(
            clusters=tuple(self.clusters.values()),
            hosts=tuple(self.hosts.values()),
            vms=tuple(self.vms.values()),
            affinity_groups=tuple(self.groups.values()),
            affinity_labels=tuple(self.labels.values()),
            pending=tuple(self.pending.values()),
        )

    def _measure(self, host_ids: set[str]) -> None:
        for host_id in host_ids:
            self.hosts[host_id] = self._occupancy.measured(self.hosts[host_id])


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
