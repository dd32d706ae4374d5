"""Bursts of starts: clusters drawn by a seed, and what they look like afterwards, counted by an oracle."""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, PlacementRule, RuleDomain, SchedulingPolicy, Snapshot
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests import builders as build
from tests.placement.rules.placement_rules.oracle import satisfied
from tests.plugins.published import Publisher

CLOCK = datetime(2030, 1, 1, tzinfo=UTC)
#: How much each weight of a rule counts next to the engine's even distribution.
FACTOR = 100
#: This many starts are asked for at the same time.
_AT_ONCE = 8
#: How probable it is that a start is published before the next one.
_OFTEN_ENOUGH = 0.2
#: More than the engine's weights together can give.
LEADING = 100_000
#: The engine's own filters that can be taken out of a policy, as a policy of ours has them.
ENGINE_FILTERS = ("Memory", "CPU", "VmAffinityGroups", "VmToHostsAffinityGroups")
EVEN = {"even_cpu_weight": 2, "even_memory_weight": 1, "preferred_hosts_weight": 99}


class Kind(Enum):
    """What binds the VMs of a burst."""

    SOFT_APART = "soft apart"
    SOFT_TOGETHER = "soft together"
    HARD_APART = "hard apart"
    HARD_TOGETHER = "hard together"
    CHAINS = "chains of hard groups"
    HA = "HA reservation"
    REPEL = "keys that repel"
    ATTRACT = "keys that attract"


class Manner(Enum):
    PARALLEL = "parallel"
    IN_TURN = "one after the other"
    EVACUATION = "evacuation"


@dataclass(frozen=True)
class Burst:
    """A cluster, and the VMs that are to start at once."""

    manner: Manner
    state: Snapshot
    vms: tuple[str, ...]
    #: The host that fails, where it is an evacuation.
    failing: str | None = None
    kind: Kind | None = None


@dataclass
class Outcome:
    """Where each VM of the burst is afterwards; None if it was refused."""

    hosts: Mapping[str, str | None]
    free_mb: Mapping[str, int] = field(default_factory=dict)
    #: Those that are not up yet, in the order in which the engine decided.
    order: tuple[str, ...] = ()


def identities(dice: random.Random) -> Callable[[], str]:
    """Draws a new id as the engine has them."""
    return lambda: str(uuid.UUID(int=dice.getrandbits(128)))


def draw(seed: int, kind: Kind, manner: Manner, sizes: tuple[int, int] = (4, 100)) -> Burst:
    """Draw a cluster and a burst."""
    dice = random.Random(f"{seed} {kind} {manner}")
    new = identities(dice)
    hosts = [
        build.host(new(), free_mb=dice.choice([65536, 65536, 49152]), memory_mb=131072, cpu_percent=20)
        for _ in range(dice.choice([4, 5, 8, 12, 13, 30, dice.randint(*sizes)]))
    ]
    many = dice.choice([2, 3, 4, 8, dice.randint(2, 50)])
    if kind is Kind.HARD_APART:
        many = min(many, len(hosts) - 1)
    if kind in {Kind.HARD_TOGETHER, Kind.CHAINS, Kind.SOFT_TOGETHER}:
        many = min(many, 12)
    failing = hosts[0].id if manner is Manner.EVACUATION else None
    ha = manner is Manner.EVACUATION or kind is Kind.HA
    keys = {
        Kind.REPEL: {"placement_keys": "Repel1:1:-100"},
        Kind.ATTRACT: {"placement_keys": "Attract1:1:100"},
    }.get(kind, {})
    vms = [build.vm(new(), failing, ha=ha, custom_properties=keys) for _ in range(many)]
    groups = list(_groups(kind, [vm.id for vm in vms], new))
    cluster = build.cluster(ha_reservation=kind is Kind.HA)
    state = build.snapshot(cluster, *hosts, *vms, *groups)
    return Burst(manner, state, tuple(vm.id for vm in vms), failing, kind)


def _groups(kind: Kind, vms: list[str], new: Callable[[], str]) -> Iterable[AffinityGroup]:
    rule = {
        Kind.SOFT_APART: build.SOFT_APART,
        Kind.SOFT_TOGETHER: build.SOFT_TOGETHER,
        Kind.HARD_APART: build.APART,
        Kind.HARD_TOGETHER: build.TOGETHER,
    }.get(kind)
    if rule is not None:
        yield build.group(new(), rule, " ".join(vms))
    if kind is Kind.CHAINS:
        for one, other in pairwise(vms):
            yield build.group(new(), build.TOGETHER, f"{one} {other}")


#: Our units for each kind, in whose place the engine's stand otherwise.
_OURS = {
    Kind.HA: ((), {"HaReservationWeight": FACTOR}),
    Kind.REPEL: (("PlacementKeyFilter",), {"PlacementKeyWeight": FACTOR}),
    Kind.ATTRACT: (("PlacementKeyFilter",), {"PlacementKeyWeight": FACTOR}),
}
_AFFINITY = (
    ("AffinityFilter", "HostAffinityFilter"),
    {"HardAffinityWeight": LEADING, "SoftAffinityWeight": FACTOR},
)
_ENGINES = {Kind.HA: {"ha_weight": FACTOR}}


def ours(burst: Burst) -> Snapshot:
    """The policy that `setup` makes: our weights next to the engine's."""
    filters, weights = _OURS.get(burst.kind, _AFFINITY)
    policy = SchedulingPolicy(filters=filters, weights=weights, engine_filters=ENGINE_FILTERS)
    return _ruled(burst.state, EVEN | _engines_own(burst), policy)


def engines(burst: Burst) -> Snapshot:
    """The same cluster under the engine's own weights alone."""
    return _ruled(burst.state, EVEN | _engines_own(burst), None)


def _engines_own(burst: Burst) -> dict[str, int]:
    return _ENGINES.get(burst.kind, {"vm_affinity_weight": FACTOR})


def _ruled(state: Snapshot, own: Mapping[str, int], policy: SchedulingPolicy | None) -> Snapshot:
    clusters = [
        replace(
            one,
            policy=dict(own),
            scheduling_policy=policy,
            scheduling_properties={"placement_tie": "engine"} if policy else {},
        )
        for one in state.clusters
    ]
    return replace(state, clusters=tuple(clusters))


@dataclass(frozen=True)
class Scene:
    """The real proxy that decides, and what its units are shown; of None, the engine decides alone."""

    proxy: str
    publisher: Publisher


def run(burst: Burst, state: Snapshot, seed: int, scene: Scene | None = None) -> Outcome:
    """Start them all. Published is the state before; where they start in turn, now and then a newer one."""
    dice = random.Random(seed)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        engine = _engine(state, seed, scene, pool)
        if burst.failing is not None:
            engine.hosts.fail(burst.failing)
            engine.advance(PROMPT.host_detection_seconds + PROMPT.host_fence_seconds - 0.1)
            _publish(engine, scene)
            engine.advance(0.2)
            pool.shutdown(wait=True)
        elif burst.manner is Manner.PARALLEL:
            list(pool.map(partial(_start, engine), burst.vms))
        else:
            for vm in burst.vms:
                _start(engine, vm)
                if dice.random() < _OFTEN_ENOUGH:
                    engine.advance(0.1)
                    _publish(engine, scene)
    return _outcome(burst, engine)


def run_in_turn(burst: Burst, state: Snapshot, seed: int, scene: Scene, *, patiently: bool) -> Outcome:
    """Start one after the other: each once the last one is up and all know, or with nothing published."""
    engine = _engine(state, seed, scene)
    for vm in burst.vms:
        _start(engine, vm)
        if patiently:
            engine.advance(60)
            _publish(engine, scene)
    return _outcome(burst, engine)


def _engine(
    state: Snapshot, seed: int, scene: Scene | None, pool: ThreadPoolExecutor | None = None
) -> Engine:
    engine = Engine.from_snapshot(
        state,
        clock=CLOCK,
        seed=seed,
        settings=PROMPT,
        proxy=scene.proxy if scene else None,
        **({"background": pool.submit} if pool else {}),
    )
    if scene is not None:
        scene.publisher.publish(engine.snapshot())
    return engine


def _publish(engine: Engine, scene: Scene | None) -> None:
    if scene is not None:
        scene.publisher.publish(engine.snapshot(), same_story=True)


def _start(engine: Engine, vm: str) -> None:
    with suppress(Rejected):
        engine.vms.start(vm)


def _outcome(burst: Burst, engine: Engine) -> Outcome:
    after = engine.snapshot()
    pending = {one.vm: one.host for one in after.pending}
    return Outcome(
        {vm: pending.get(vm) or after.vm_by_id[vm].host for vm in burst.vms},
        {host.id: host.free_mb for host in after.hosts},
        tuple(dict.fromkeys(_named(engine, burst))),
    )


def _named(engine: Engine, burst: Burst) -> Iterator[str]:
    """The VMs that events name, the oldest event first."""
    for event in reversed(engine.queries.events()):
        if event.vm is not None and event.vm.id in burst.vms:
            yield event.vm.id


# -- Under hard placement rules, which no engine knows.
_RULED = SchedulingPolicy(
    filters=("PlacementRuleFilter",), weights={"PlacementRuleWeight": LEADING}, engine_filters=ENGINE_FILTERS
)


def draw_ruled(seed: int, kind: str, manner: Manner) -> Burst:
    """Unequal hosts in three racks, strangers that run, and VMs that start under one rule."""
    dice = random.Random(f"{seed} {kind} {manner}")
    new = identities(dice)
    hosts = [
        build.host(
            new(),
            free_mb=dice.choice([65536, 49152, 32768]),
            memory_mb=131072,
            cores=dice.choice([8, 16, 32]),
        )
        for _ in range(dice.choice([6, 7, 9, 12]))
    ]
    failing = hosts[0].id if manner is Manner.EVACUATION else None
    stay = [host.id for host in hosts[1:]]
    strangers = [build.vm(new(), dice.choice(stay)) for _ in range(dice.randint(0, 4))]
    vms = [build.vm(new(), failing, ha=failing is not None) for _ in range(dice.randint(2, 8))]
    racks = tuple(
        RuleDomain(name=f"r{rack}", hosts=tuple(host.id for host in hosts[rack::3])) for rack in range(3)
    )
    ruled = _placement_rule(kind, [vm.id for vm in vms], stay, racks, [one.id for one in strangers])
    cluster = build.cluster(policy=dict(EVEN), scheduling_policy=_RULED)
    state = build.snapshot(cluster, *hosts, *vms, *strangers, ruled)
    return Burst(manner, state, tuple(vm.id for vm in vms), failing)


def _placement_rule(
    kind: str, vms: list[str], hosts: list[str], racks: tuple[RuleDomain, ...], strangers: list[str]
) -> PlacementRule:
    half = max(1, len(vms) // 2)
    fields: dict[str, Any] = {
        "at_most_per_host": {"most": 2},
        "at_most_per_domain": {"most": 3, "domains": racks},
        "spread": {"max_skew": 1, "domains": racks},
        "minimum_domains": {"least": 2, "domains": racks},
        "same_domain": {"domains": racks},
        "separate": {"other_vms": " ".join(vms[half:]), "vms": " ".join(vms[:half])},
        "exclusive_hosts": {"hosts": " ".join(hosts[:2]), "vms": " ".join(strangers) or "nobody"},
        "capacity": {"hosts": " ".join(hosts[:3]), "most": 2},
    }[kind]
    return build.rule("r", kind, fields.pop("vms", " ".join(vms)), **fields)


def burden(burst: Burst, outcome: Outcome) -> int:
    """How far the cluster is from what the rule asks for; 0 is best, refused VMs aside."""
    if burst.state.placement_rules:
        at = {one.id: one.host for one in burst.state.vms if one.host and one.id not in burst.vms}
        at |= {vm: host for vm, host in outcome.hosts.items() if host}
        (ruled,) = burst.state.placement_rules
        return not satisfied(ruled, _without_failed(burst), at)
    counts = Counter(host for host in outcome.hosts.values() if host)
    if burst.kind in {Kind.SOFT_APART, Kind.REPEL, Kind.HARD_APART}:
        return sum(count * (count - 1) // 2 for count in counts.values())
    if burst.kind is Kind.HA:
        return sum(count * count for count in counts.values())
    return len(counts) - 1


def refused(outcome: Outcome) -> int:
    return sum(host is None for host in outcome.hosts.values())


def _without_failed(burst: Burst) -> Snapshot:
    hosts = [
        replace(host, status="non_responsive") if host.id == burst.failing else host
        for host in burst.state.hosts
    ]
    return replace(burst.state, hosts=tuple(hosts))
