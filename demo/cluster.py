"""Draws the cluster of the demonstration: satisfied and violated rules, VMs that wait to start."""

import random

from ovirt_placement.model import AffinityGroup, AffinityRule, Cluster, Host, SchedulingPolicy, Snapshot, Vm
from ovirt_simulator.core.state import required_mb

CLUSTER = "production"
#: VMs that wait to be started, and what becomes of each.
JOINS, STAYS_AWAY, HAS_NO_HOST = "shop-cache", "ledger-new", "audit-probe"

_HOST_MEMORY_MB = 65_536
_HARD_TOGETHER = AffinityRule(enabled=True, positive=True, enforcing=True)
_HARD_APART = AffinityRule(enabled=True, positive=False, enforcing=True)
_OFF = AffinityRule(enabled=False, positive=False, enforcing=False)


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
    vms = {
        **_split_positive_group(chance, drawn),
        **_crowded_negative_group(chance, drawn),
        **_waiting_vms(chance, drawn),
        **{f"batch-{n}": chance.choice(hosts) for n in range(1, chance.randint(3, 9))},
    }
    policy = SchedulingPolicy(filters=("AffinityFilter",))
    cluster = Cluster(id=CLUSTER, name=CLUSTER, ha_reservation=False, scheduling_policy=policy)
    return Snapshot(
        clusters=(cluster,),
        hosts=tuple(_host(name, vms) for name in hosts),
        vms=tuple(_vm(name, host) for name, host in sorted(vms.items())),
        affinity_groups=tuple(_groups(vms)),
        affinity_labels=(),
    )


def _split_positive_group(chance: random.Random, hosts: list[str]) -> dict[str, str | None]:
    majority = range(1, chance.randint(2, 3) + 1)
    return {**{f"app-{n}": hosts[0] for n in majority}, "app-stray": hosts[1]}


def _crowded_negative_group(chance: random.Random, hosts: list[str]) -> dict[str, str | None]:
    crowded, *others = chance.sample(hosts, 3)
    return {"db-1": crowded, "db-2": crowded, "db-3": others[0]}


def _waiting_vms(chance: random.Random, hosts: list[str]) -> dict[str, str | None]:
    """The shop's database runs, its web server is down; ledgers run on all hosts but one."""
    shop = chance.choice(hosts)
    free = chance.choice(hosts)
    ledgers = {f"ledger-{n}": host for n, host in enumerate((h for h in hosts if h != free), 1)}
    return {
        "shop-db": shop,
        "shop-web": None,
        JOINS: None,
        STAYS_AWAY: None,
        **ledgers,
        "audit-log": hosts[-1],
        "audit-relay": None,
        "audit-rival": hosts[-1],
        HAS_NO_HOST: None,
    }


def _groups(vms: dict[str, str | None]) -> list[AffinityGroup]:
    def named(prefix: str) -> list[str]:
        return [vm for vm in vms if vm.startswith(prefix)]

    return [
        _group("app-together", _HARD_TOGETHER, named("app-")),
        _group("db-apart", _HARD_APART, named("db-")),
        _group("shop-backend", _HARD_TOGETHER, ["shop-db", "shop-web"]),
        _group("shop-frontend", _HARD_TOGETHER, ["shop-web", JOINS]),
        _group("ledger-apart", _HARD_APART, named("ledger-")),
        _group("audit-chain", _HARD_TOGETHER, ["audit-log", "audit-relay"]),
        _group("audit-tap", _HARD_TOGETHER, ["audit-relay", HAS_NO_HOST]),
        _group("audit-rivals", _HARD_APART, ["audit-rival", HAS_NO_HOST]),
    ]


def _host(name: str, vms: dict[str, str | None]) -> Host:
    used = sum(required_mb(_vm(vm, host)) for vm, host in vms.items() if host == name)
    return Host(
        id=name,
        name=name,
        cluster=CLUSTER,
        status="up",
        memory_mb=_HOST_MEMORY_MB,
        free_mb=_HOST_MEMORY_MB - used,
        cpu_percent=10.0,
        cores=16,
    )


def _vm(name: str, host: str | None) -> Vm:
    memory_mb = 4096 if name.startswith(("app-", "db-")) else 2048
    return Vm(
        id=name,
        name=name,
        cluster=CLUSTER,
        host=host,
        status="up" if host else "down",
        memory_mb=memory_mb,
        guaranteed_mb=memory_mb,
        usage_mem_percent=50.0 if host else None,
        usage_cpu_percent=5.0 if host else None,
        vcpus=2,
        ha=name.startswith("db-"),
        migratable=True,
        hosted_engine=False,
    )


def _group(name: str, rule: AffinityRule, vms: list[str]) -> AffinityGroup:
    return AffinityGroup(
        id=name,
        name=name,
        cluster=CLUSTER,
        priority=1.0,
        vms_rule=rule,
        hosts_rule=_OFF,
        vms=tuple(vms),
        hosts=(),
        vm_labels=(),
        host_labels=(),
    )
