"""Bursts in which all kinds of rules meet: unequal hosts, other VMs that run, any factors of the weights."""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Host, SchedulingPolicy, Snapshot, Vm
from tests import builders as build
from tests.integration.bursts import ENGINE_FILTERS, LEADING, Burst, Manner, Outcome
from tests.placement.rules.strategies import is_violated

#: More than the engine adds to the memory of any VM here.
OVERHEAD_MB = 256
#: Which of our units each of the engine's weights has next to it.
_OURS = {
    "vm_affinity_weight": "SoftAffinityWeight",
    "vm_to_host_weight": "HostAffinityWeight",
    "ha_weight": "HaReservationWeight",
}


@dataclass
class Parts:
    """What a mixture is made of, while it is drawn."""

    dice: random.Random
    hosts: list[Host] = field(default_factory=list)
    vms: list[Vm] = field(default_factory=list)
    groups: list[AffinityGroup] = field(default_factory=list)
    #: The VMs that are to start.
    starts: list[str] = field(default_factory=list)
    #: The VMs that hard groups tie together through VMs that stay down.
    chains: list[tuple[str, ...]] = field(default_factory=list)

    def new(self) -> str:
        return str(uuid.UUID(int=self.dice.getrandbits(128)))


@dataclass(frozen=True)
class Mixture(Burst):
    """A burst in which all kinds of rules meet."""

    #: The VMs that hard groups tie together through VMs that stay down.
    chains: tuple[tuple[str, ...], ...] = ()


def draw(seed: int) -> Mixture:
    """Draw a cluster and a burst."""
    parts = Parts(random.Random(f"mixture {seed}"))
    dice = parts.dice
    manner = dice.choice([Manner.PARALLEL, Manner.PARALLEL, Manner.IN_TURN, Manner.EVACUATION])
    for _ in range(dice.choice([3, 4, 6, 10, 10, 16, dice.randint(3, 50)])):
        memory = dice.choice([65536, 65536, 65536, 98304, 131072])
        parts.hosts.append(
            build.host(
                parts.new(),
                memory_mb=memory,
                free_mb=memory - 4096,
                cpu_percent=dice.choice([0, 10, 20, 40]),
                cores=dice.choice([8, 16, 16, 32]),
            )
        )
    failing = parts.hosts[0].id if manner is Manner.EVACUATION else None
    kinds = dice.sample(_KINDS, dice.choice([1, 1, 2, 3, 4, len(_KINDS)]))
    room = dice.choice([4, 10, 30, 100])
    while len(parts.starts) < room:
        dice.choice(kinds)(parts)
        if dice.random() < 0.1:
            break
    del parts.starts[100:]
    _others(parts)
    started = frozenset(parts.starts)
    ha = failing is not None or dice.random() < 0.3
    vms = [
        replace(vm, ha=ha, host=failing, status="up" if failing else "down") if vm.id in started else vm
        for vm in parts.vms
    ]
    hosts = [_loaded(host, [vm for vm in vms if vm.host == host.id]) for host in parts.hosts]
    state = build.snapshot(
        build.cluster(ha_reservation=ha, policy=_factors(dice)), *hosts, *vms, *parts.groups
    )
    dice.shuffle(parts.starts)
    return Mixture(manner, state, tuple(parts.starts), failing, chains=tuple(parts.chains))


def _loaded(host: Host, vms: Sequence[Vm]) -> Host:
    """The host with the memory of its VMs handed out; each takes a little more than its own."""
    return replace(host, free_mb=host.free_mb - sum(vm.memory_mb + OVERHEAD_MB for vm in vms))


def _factors(dice: random.Random) -> dict[str, int]:
    strength = dice.choice([1, 10, 100, 100])
    return {
        "even_cpu_weight": dice.choice([0, 2, 2, 5]),
        "even_memory_weight": dice.choice([1, 1, 3]),
        "preferred_hosts_weight": 99,
        "vm_affinity_weight": strength,
        "vm_to_host_weight": dice.choice([20, 20, strength]),
        "ha_weight": dice.choice([1, 1, 10]),
    }


def _fresh(parts: Parts, many: int, *, keys: str = "") -> list[str]:
    memory = parts.dice.choice([512, 1024, 1024, 2048])
    properties = {"placement_keys": keys} if keys else {}
    vms = [
        build.vm(
            parts.new(),
            memory_mb=memory,
            guaranteed_mb=memory,
            vcpus=parts.dice.choice([1, 1, 2, 4]),
            custom_properties=properties,
        )
        for _ in range(many)
    ]
    parts.vms += vms
    return [vm.id for vm in vms]


def _group(parts: Parts, rule: build.AffinityRule, vms: Iterable[str]) -> None:
    priority = parts.dice.choice([1.0, 1.0, 2.0, 5.0])
    parts.groups.append(build.group(parts.new(), rule, " ".join(vms), priority=priority))


def _plain(rule: build.AffinityRule, most: int) -> Callable[[Parts], None]:
    """Groups of one kind; now and then a member of a soft one is in another one, too."""

    def add(parts: Parts) -> None:
        for _ in range(parts.dice.randint(1, 4)):
            many = parts.dice.randint(2, most)
            if rule is build.APART:
                many = min(many, len(parts.hosts) - 2)
            if many < 2:
                continue
            vms = _fresh(parts, many)
            parts.starts += vms
            shared = [one for one in parts.starts[:-many] if parts.dice.random() < 0.05]
            _group(parts, rule, [*vms, *(shared[:1] if not rule.enforcing else ())])

    return add


def _chain(parts: Parts) -> None:
    """Two to five VMs that start, each tied to the next by one that stays down; some have keys, too."""
    keys = parts.dice.choice(_KEYS) if parts.dice.random() < 0.2 else ""
    vms = _fresh(parts, parts.dice.randint(2, 5), keys=keys)
    parts.starts += vms
    for one, other in pairwise(vms):
        (link,) = _fresh(parts, 1)
        _group(parts, build.TOGETHER, (one, link))
        _group(parts, build.TOGETHER, (link, other))
    parts.chains.append(tuple(vms))


def _on_hosts(parts: Parts) -> None:
    rule = parts.dice.choice([build.TOGETHER, build.SOFT_TOGETHER, build.APART, build.SOFT_APART])
    many = parts.dice.randint(1, max(1, len(parts.hosts) - 2))
    hosts = parts.dice.sample([host.id for host in parts.hosts[1:]], min(many, len(parts.hosts) - 1))
    vms = _fresh(parts, parts.dice.randint(1, 5))
    parts.starts += vms
    parts.groups.append(build.group(parts.new(), vms=" ".join(vms), hosts_rule=rule, hosts=" ".join(hosts)))


def _unbound(parts: Parts) -> None:
    parts.starts += _fresh(parts, parts.dice.randint(1, 6))


def _keyed(parts: Parts) -> None:
    """VMs with placement keys, which only our units know; they are in no group."""
    parts.starts += _fresh(parts, parts.dice.randint(2, 6), keys=parts.dice.choice(_KEYS))


_KINDS = [
    _plain(build.SOFT_APART, 8),
    _plain(build.SOFT_TOGETHER, 5),
    _plain(build.APART, 6),
    _plain(build.TOGETHER, 5),
    _chain,
    _on_hosts,
    _unbound,
    _keyed,
]
_KEYS = ["Repel1:1:-100", "Attract1:1:100", "Other:3:20"]


def _others(parts: Parts) -> None:
    """VMs that run already, some of them in a soft group with those that start."""
    for host in parts.hosts:
        for vm in _fresh(parts, parts.dice.choice([0, 1, 3, 8])):
            at = next(place for place, one in enumerate(parts.vms) if one.id == vm)
            parts.vms[at] = replace(parts.vms[at], host=host.id, status="up")
            if parts.starts and parts.dice.random() < 0.1:
                rule = parts.dice.choice([build.SOFT_APART, build.SOFT_TOGETHER])
                _group(parts, rule, (vm, parts.dice.choice(parts.starts)))


def ours(mixture: Mixture) -> Snapshot:
    """The cluster with the policy that `setup` makes: our weights next to the engine's."""
    (cluster,) = mixture.state.clusters
    weights = {unit: cluster.policy[name] for name, unit in _OURS.items()} | {"HaReservationWeight": 1}
    policy = SchedulingPolicy(
        filters=("AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter"),
        weights={"HardAffinityWeight": LEADING, "PlacementKeyWeight": LEADING, **weights},
        engine_filters=ENGINE_FILTERS,
    )
    return replace(mixture.state, clusters=(replace(cluster, scheduling_policy=policy),))


def violated(mixture: Mixture, outcome: Outcome) -> Mapping[str, int]:
    """How many rules of each kind are violated afterwards: hard, soft and chain.

    Soft rules of VMs with placement keys are left out: there keys come first, as their factor says.
    """
    keyed = {vm.id for vm in mixture.state.vms if vm.custom_properties}
    where = {vm.id: vm.host for vm in mixture.state.vms if vm.id not in outcome.hosts} | dict(outcome.hosts)
    found: Counter[str] = Counter()
    for group in mixture.state.affinity_groups:
        hard = group.vms_rule.hard or group.hosts_rule.hard
        if hard or keyed.isdisjoint(group.vms):
            found["hard" if hard else "soft"] += is_violated(
                group, [host for vm in group.vms if (host := where[vm])], group.hosts
            )
    found["chain"] = sum(_is_torn(chain, mixture, outcome) for chain in mixture.chains)
    found["refused"] = sum(host is None for host in outcome.hosts.values())
    return found


def _is_torn(chain: Sequence[str], mixture: Mixture, outcome: Outcome) -> bool:
    """Whether a chain is on several hosts, though the one with most of it has room left for the others."""
    counts = Counter(host for vm in chain if (host := outcome.hosts.get(vm)))
    if len(counts) < 2:
        return False
    ((most, _),) = counts.most_common(1)
    apart = [
        mixture.state.vm_by_id[vm].memory_mb for vm in chain if outcome.hosts.get(vm) not in (most, None)
    ]
    return outcome.free_mb[most] >= min(apart) + OVERHEAD_MB
