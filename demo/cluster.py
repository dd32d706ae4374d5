"""Draws the cluster of the demonstration: satisfied and violated rules, VMs that wait to start."""

import random

from ovirt_placement.model import SchedulingPolicy, Snapshot, Vm
from ovirt_simulator.core.state import required_mb
from tests import builders
from tests.builders import APART, TOGETHER

CLUSTER = "production"
#: VMs that wait to be started, and what becomes of each.
JOINS, STAYS_AWAY, HAS_NO_HOST = "shop-cache", "ledger-new", "audit-probe"

_HOST_MEMORY_MB = 65_536


def draw(seed: int) -> Snapshot:
    """A cluster whose shape depends on `seed` alone.

    In each, one hard positive group is split, one hard negative group shares a host, and three VMs are down:
    `JOINS` must follow a peer that it knows only through a third, `STAYS_AWAY` finds one host without a
    peer, and `HAS_NO_HOST` would have to be together with and apart from VMs of the same host.
    """
    chance = random.Random(seed)  # noqa: S311 - a demonstration, not a secret
    hosts = [f"host{number}" for number in range(1, chance.randint(4, 6) + 1)]
    drawn = hosts.copy()
    chance.shuffle(drawn)
    on: dict[str, str | None] = {f"app-{n}": drawn[0] for n in range(1, chance.randint(2, 3) + 1)}
    crowded, other, _ = chance.sample(drawn, 3)
    on |= {"app-stray": drawn[1], "db-1": crowded, "db-2": crowded, "db-3": other}
    # The shop's database runs, its web server is down; ledgers run on all hosts but one.
    shop, free = chance.choice(drawn), chance.choice(drawn)
    on |= {"shop-db": shop, "shop-web": None, JOINS: None, STAYS_AWAY: None}
    on |= {f"ledger-{n}": host for n, host in enumerate((one for one in drawn if one != free), 1)}
    on |= {"audit-log": drawn[-1], "audit-relay": None, "audit-rival": drawn[-1], HAS_NO_HOST: None}
    on |= {f"batch-{n}": chance.choice(hosts) for n in range(1, chance.randint(3, 9))}
    vms = [_vm(name, host) for name, host in sorted(on.items())]
    used = {host: sum(required_mb(vm) for vm in vms if vm.host == host) for host in hosts}
    policy = SchedulingPolicy(filters=("AffinityFilter",))
    sizes = {"cluster": CLUSTER, "memory_mb": _HOST_MEMORY_MB, "cpu_percent": 10.0}
    groups = [
        ("app-together", TOGETHER, [vm for vm in on if vm.startswith("app-")]),
        ("db-apart", APART, [vm for vm in on if vm.startswith("db-")]),
        ("shop-backend", TOGETHER, ["shop-db", "shop-web"]),
        ("shop-frontend", TOGETHER, ["shop-web", JOINS]),
        ("ledger-apart", APART, [vm for vm in on if vm.startswith("ledger-")]),
        ("audit-chain", TOGETHER, ["audit-log", "audit-relay"]),
        ("audit-tap", TOGETHER, ["audit-relay", HAS_NO_HOST]),
        ("audit-rivals", APART, ["audit-rival", HAS_NO_HOST]),
    ]
    return builders.snapshot(
        builders.cluster(CLUSTER, scheduling_policy=policy),
        *(builders.host(name, free_mb=_HOST_MEMORY_MB - used[name], **sizes) for name in hosts),
        *vms,
        *(builders.group(name, rule, " ".join(members), cluster=CLUSTER) for name, rule, members in groups),
    )


def _vm(name: str, host: str | None) -> Vm:
    memory_mb = 4096 if name.startswith(("app-", "db-")) else 2048
    return builders.vm(
        name,
        host,
        cluster=CLUSTER,
        memory_mb=memory_mb,
        guaranteed_mb=memory_mb,
        usage_mem_percent=50.0 if host else None,
        usage_cpu_percent=5.0 if host else None,
        vcpus=2,
        ha=name.startswith("db-"),
    )
