"""Draws clusters of any size: hosts, VMs that fit on them, and affinity groups of which some are violated."""

import random
import uuid
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ovirt_placement import model
from ovirt_simulator.core.state import required_mb

_DISABLED = model.AffinityRule(enabled=False, positive=False, enforcing=False)
_GIB = 1024
_VM_SIZES_MB = (1 * _GIB, 2 * _GIB, 2 * _GIB, 4 * _GIB, 4 * _GIB, 8 * _GIB)
#: How much of the hosts' memory running VMs take: room for repairs and for one host that fails.
_FILL = 0.6


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How much to draw; everything is spread evenly over the clusters."""

    clusters: int = 1
    hosts: int = 10
    vms: int = 100
    groups: int = 10
    #: Shares of VMs that are down or highly available, and of groups that are violated, soft, or use a label.
    down: float = 0.1
    ha: float = 0.2
    broken: float = 0.1
    soft: float = 0.2
    labelled: float = 0.2


def generate(sizes: Sizes, seed: int = 0) -> model.Snapshot:
    """Draw a state; the same sizes and seed give the same one.

    No VM is in two groups, so every group can be satisfied, given the memory. A group that is drawn violated
    has one VM where it must not be, as long as the cluster has a second host.
    """
    dice = random.Random(seed)  # noqa: S311 - dice, not secrets
    drafts = [_ClusterDraft(sizes, number, dice) for number in range(sizes.clusters)]
    network = model.Network(id=_id(dice), name="ovirtmgmt")
    profile = model.VnicProfile(id=_id(dice), name="ovirtmgmt", network=network.id)
    return model.Snapshot(
        clusters=tuple(draft.cluster for draft in drafts),
        hosts=tuple(host for draft in drafts for host in draft.measured_hosts()),
        # The ids of NICs come after all other draws, so that a seed draws what it always did.
        vms=tuple(
            replace(vm, nics=(model.Nic(id=_id(dice), name="nic1", vnic_profile=profile.id),))
            for draft in drafts
            for vm in draft.vms.values()
        ),
        networks=(network,),
        vnic_profiles=(profile,),
        affinity_groups=tuple(group for draft in drafts for group in draft.groups),
        affinity_labels=tuple(label for draft in drafts for label in draft.labels),
    )


def _id(dice: random.Random) -> str:
    return str(uuid.UUID(int=dice.getrandbits(128), version=4))


class _ClusterDraft:
    """One cluster while it is drawn: VMs first, hosts they fit on, groups, then the rest of the VMs."""

    def __init__(self, sizes: Sizes, number: int, dice: random.Random) -> None:
        self._sizes = sizes
        self._dice = dice
        self._number = number
        name = f"cluster-{number + 1}"
        self.cluster = model.Cluster(id=_id(self._dice), name=name, ha_reservation=number % 2 == 0)
        self.vms = {vm.id: vm for vm in self._draw_vms()}
        self.hosts = list(self._draw_hosts())
        self._left = {host.id: host.memory_mb for host in self.hosts}
        self.groups: list[model.AffinityGroup] = []
        self.labels: list[model.AffinityLabel] = []
        self._draw_groups()
        for vm in list(self.vms.values()):
            if vm.status == "up" and vm.host is None:
                self._place([vm.id], self.hosts)

    def measured_hosts(self) -> Iterator[model.Host]:
        """Give the hosts with what their VMs leave over."""
        cores: dict[str, float] = dict.fromkeys(self._left, 0.0)
        used: dict[str, float] = dict.fromkeys(self._left, 0.0)
        for vm in self.vms.values():
            if vm.host is not None:
                cores[vm.host] += vm.vcpus * (vm.usage_cpu_percent or 0) / 100
                used[vm.host] += vm.memory_mb * (vm.usage_mem_percent or 0) / 100
        for host in self.hosts:
            yield replace(
                host,
                free_mb=self._left[host.id],
                memory_free_mb=round(host.memory_mb - used[host.id]),
                cpu_percent=min(round(cores[host.id] / host.cores * 100, 1), 100.0),
            )

    def _share(self, total: int) -> range:
        """Give this cluster's numbers among all."""
        return range(self._number, total, self._sizes.clusters)

    def _draw_vms(self) -> Iterator[model.Vm]:
        for number in self._share(self._sizes.vms):
            running = self._dice.random() >= self._sizes.down
            memory_mb = self._dice.choice(_VM_SIZES_MB)
            yield model.Vm(
                id=_id(self._dice),
                name=f"vm-{number + 1:05}",
                cluster=self.cluster.id,
                host=None,
                status="up" if running else "down",
                memory_mb=memory_mb,
                guaranteed_mb=memory_mb // 2,
                usage_mem_percent=self._dice.randrange(20, 90) if running else None,
                usage_cpu_percent=self._dice.randrange(1, 40) if running else None,
                vcpus=self._dice.choice((1, 2, 2, 4)),
                ha=self._dice.random() < self._sizes.ha,
                migratable=True,
                hosted_engine=False,
            )

    def _draw_hosts(self) -> Iterator[model.Host]:
        numbers = self._share(self._sizes.hosts)
        running = sum(required_mb(vm) for vm in self.vms.values() if vm.status == "up")
        wanted = running / _FILL / max(len(numbers), 1)
        memory_mb = max(4 * max(_VM_SIZES_MB), -(-int(wanted) // (16 * _GIB)) * 16 * _GIB)
        for number in numbers:
            yield model.Host(
                id=_id(self._dice),
                name=f"host-{number + 1:03}",
                cluster=self.cluster.id,
                status="up",
                memory_mb=memory_mb,
                free_mb=memory_mb,
                cpu_percent=0.0,
                cores=max(16, memory_mb // (8 * _GIB)),
            )

    def _draw_groups(self) -> None:
        free = list(self.vms)
        self._dice.shuffle(free)
        for number in self._share(self._sizes.groups):
            size = min(self._dice.randrange(2, 5), len(self.hosts))
            members, free = free[:size], free[size:]
            if len(members) < 2:
                return
            self._draw_group(number, members)

    def _draw_group(self, number: int, members: list[str]) -> None:
        broken = self._dice.random() < self._sizes.broken
        positive = self._dice.random() < 0.5
        enforcing = self._dice.random() >= self._sizes.soft
        rule = model.AffinityRule(enabled=True, positive=positive, enforcing=enforcing)
        by_hosts = self._dice.random() < 0.3
        some = self._dice.sample(self.hosts, max(1, len(self.hosts) // 4)) if by_hosts else []
        if by_hosts:
            self._place_by_hosts(members, some, positive=positive, broken=broken)
        else:
            self._place_by_vms(members, positive=positive, broken=broken)
        labels: tuple[str, ...] = ()
        if self._dice.random() < self._sizes.labelled:
            name, vms = f"label-{number + 1:04}", tuple(members)
            self.labels.append(model.AffinityLabel(id=_id(self._dice), name=name, vms=vms, hosts=()))
            labels = (self.labels[-1].id,)
        self.groups.append(
            model.AffinityGroup(
                id=_id(self._dice),
                name=f"group-{number + 1:04}",
                cluster=self.cluster.id,
                priority=float(self._dice.randrange(1, 6)),
                vms_rule=_DISABLED if by_hosts else rule,
                hosts_rule=rule if by_hosts else _DISABLED,
                vms=() if labels else tuple(members),
                hosts=tuple(host.id for host in some),
                vm_labels=labels,
                host_labels=(),
            )
        )

    def _place_by_vms(self, members: list[str], *, positive: bool, broken: bool) -> None:
        """Put VMs on one host or on hosts of their own; if violated, do it wrong by one VM."""
        running = [vm_id for vm_id in members if self.vms[vm_id].status == "up"]
        stray = running[-1:] if broken and len(running) > 1 else []
        rest = running[: len(running) - len(stray)]
        if positive:
            home = self._place(rest, self.hosts)
            self._place(stray, [host for host in self.hosts if host.id != home])
            return
        taken: set[str | None] = set()
        for vm_id in rest:
            taken.add(self._place([vm_id], [host for host in self.hosts if host.id not in taken]))
        self._place(stray, [host for host in self.hosts if host.id in taken])

    def _place_by_hosts(
        self, members: list[str], some: Sequence[model.Host], *, positive: bool, broken: bool
    ) -> None:
        listed = {host.id for host in some}
        right = [host for host in self.hosts if (host.id in listed) == positive]
        wrong = [host for host in self.hosts if (host.id in listed) != positive]
        running = [vm_id for vm_id in members if self.vms[vm_id].status == "up"]
        for index, vm_id in enumerate(running):
            self._place([vm_id], wrong if broken and index == 0 else right)

    def _place(self, vm_ids: Sequence[str], hosts: Sequence[model.Host]) -> str | None:
        """Put the VMs together on the emptiest host of some drawn from these; without room they are down."""
        if not vm_ids:
            return None
        needed = sum(required_mb(self.vms[vm_id]) for vm_id in vm_ids)
        drawn = self._dice.sample(hosts, min(8, len(hosts)))
        fitting = [host.id for host in drawn if self._left[host.id] >= needed] or [
            host.id for host in hosts if self._left[host.id] >= needed
        ]
        home = max(fitting, key=lambda host_id: self._left[host_id]) if fitting else None
        if home is not None:
            self._left[home] -= needed
        for vm_id in vm_ids:
            status = "down" if home is None else "up"
            self.vms[vm_id] = replace(self.vms[vm_id], host=home, status=status)
        return home
