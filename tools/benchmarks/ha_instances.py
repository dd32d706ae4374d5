"""A data centre after BtrPlace's published instance nr6: three-tier applications on thousands of hosts.

There, 5 % of the hosts go away, and their VMs must find homes under 5,166 `spread` and 1,722 `among` rules.
Here a spread is a hard negative VM group. An among keeps VMs on one of several lists of hosts; the VMs that
stay settle which one, so it is a hard group with those hosts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from ovirt_placement.model import AffinityGroup, AffinityRule, Cluster, Host, Snapshot, Vm
from tests.builders import of_so_much

_DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)
_APART = AffinityRule(enabled=True, positive=False, enforcing=True)
_ON_HOSTS = AffinityRule(enabled=True, positive=True, enforcing=True)
_CLUSTER = "cluster"
_VM_SIZES_MB = (768, 1024, 1536, 2048, 2304, 4096)
#: Memory comes in pieces of this size.
_PIECE_MB = 256


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """As many as in nr6."""

    hosts: int = 5_000
    vms: int = 30_000
    applications: int = 1_722
    #: Hosts at one edge switch: what the last tier of an application stays among.
    switch: int = 250
    #: The share of the hosts' memory that is handed out.
    fill: float = 0.8


class _Draft:
    """Hosts that fill up while VMs are put on them."""

    def __init__(self, sizes: Sizes, dice: random.Random) -> None:
        self.sizes = sizes
        self.dice = dice
        expected = sizes.vms * sum(_VM_SIZES_MB) / len(_VM_SIZES_MB)
        self.memory_mb = round(expected / sizes.hosts / sizes.fill / _PIECE_MB) * _PIECE_MB
        self.hosts = [f"h{number:04}" for number in range(sizes.hosts)]
        self.free = dict.fromkeys(self.hosts, self.memory_mb)
        self.vms: list[Vm] = []

    def tier(self, size: int, hosts: Sequence[str]) -> tuple[str, ...]:
        """Put this many VMs on hosts of their own."""
        taken: set[str] = set()
        for _ in range(size):
            memory_mb = self.dice.choice(_VM_SIZES_MB)
            home = self._open_host(hosts, memory_mb, taken)
            taken.add(home)
            self.free[home] -= memory_mb
            self.vms.append(_vm(len(self.vms), home, memory_mb))
        return tuple(vm.id for vm in self.vms[len(self.vms) - size :])

    def _open_host(self, hosts: Sequence[str], memory_mb: int, taken: set[str]) -> str:
        for _ in range(50):
            host = self.dice.choice(hosts)
            if host not in taken and self.free[host] >= memory_mb:
                return host
        return max((host for host in hosts if host not in taken), key=lambda host: self.free[host])

    def measured(self) -> tuple[Host, ...]:
        return tuple(
            Host(
                id=host,
                name=host,
                cluster=_CLUSTER,
                status="up",
                memory_mb=self.memory_mb,
                free_mb=self.free[host],
                cpu_percent=40,
                cores=16,
            )
            for host in self.hosts
        )


def data_centre(sizes: Sizes, seed: int = 0) -> Snapshot:
    """Draw a data centre; the same sizes and seed give the same one."""
    dice = random.Random(seed)
    draft = _Draft(sizes, dice)
    switches = [draft.hosts[at : at + sizes.switch] for at in range(0, sizes.hosts, sizes.switch)]
    tiers = 3 * sizes.applications
    groups: list[AffinityGroup] = []
    for tier in range(tiers):
        size = sizes.vms * (tier + 1) // tiers - sizes.vms * tier // tiers
        last = tier % 3 == 2
        switch = dice.choice(switches) if last else draft.hosts
        vms = draft.tier(size, switch)
        groups.append(_group(f"spread-{tier}", vms, vms_rule=_APART))
        if last:
            groups.append(_group(f"among-{tier}", vms, hosts_rule=_ON_HOSTS, hosts=tuple(switch)))
    return Snapshot(
        clusters=(Cluster(id=_CLUSTER, name=_CLUSTER, ha_reservation=True),),
        hosts=draft.measured(),
        vms=tuple(draft.vms),
        affinity_groups=tuple(groups),
        affinity_labels=(),
    )


def gone(snapshot: Snapshot, share: float = 0.05, seed: int = 0) -> frozenset[str]:
    """Hosts that fail together: a share of all, at random."""
    hosts = [host.id for host in snapshot.hosts]
    return frozenset(random.Random(seed).sample(hosts, round(len(hosts) * share)))


def _vm(number: int, host: str, needs_mb: int) -> Vm:
    memory_mb = of_so_much(needs_mb, vcpus=1)["memory_mb"]
    return Vm(
        id=f"v{number:05}",
        name=f"v{number:05}",
        cluster=_CLUSTER,
        host=host,
        status="up",
        memory_mb=memory_mb,
        guaranteed_mb=memory_mb,
        usage_mem_percent=60,
        usage_cpu_percent=20,
        vcpus=1,
        ha=True,
        migratable=True,
        hosted_engine=False,
    )


def _group(
    name: str,
    vms: tuple[str, ...],
    *,
    vms_rule: AffinityRule = _DISABLED,
    hosts_rule: AffinityRule = _DISABLED,
    hosts: tuple[str, ...] = (),
) -> AffinityGroup:
    return AffinityGroup(
        id=name,
        name=name,
        cluster=_CLUSTER,
        priority=1.0,
        vms_rule=vms_rule,
        hosts_rule=hosts_rule,
        vms=vms,
        hosts=hosts,
        vm_labels=(),
        host_labels=(),
    )
