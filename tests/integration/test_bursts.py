"""VMs that start in the same second see each other: a cluster looks afterwards as the engine's own weights,
which know what is pending, would have left it, or better; and no hard rule is violated.

The proxy is a real one in a process of its own; the simulator's weights and filters are not ours.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from ovirt_placement.model import SchedulingPolicy
from tests import builders as build
from tests.integration.bursts import (
    Kind,
    Manner,
    Scene,
    burden,
    draw,
    engines,
    ours,
    refused,
    run,
    run_in_turn,
)
from tests.integration.world import running
from tests.plugins.proxy_process import running_proxy

pytestmark = pytest.mark.system

#: What keys refuse for what runs somewhere, they only rank lower for what is expected there.
KEYS = {Kind.REPEL, Kind.ATTRACT}
HARD = {Kind.HARD_APART, Kind.HARD_TOGETHER, Kind.CHAINS}
SEEDS = [pytest.param(4, id="4 seeds"), pytest.param(30, id="30 seeds", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("manner", Manner, ids=lambda manner: manner.value)
def test_bursts_leave_the_cluster_no_worse_than_the_engines_own_weights(
    scene: Scene, manner: Manner, seeds: int
) -> None:
    in_sum = engines_in_sum = worse = 0
    for kind in Kind:
        for seed in range(seeds):
            burst = draw(seed, kind, manner)
            one, other = run(burst, ours(burst), seed, scene), run(burst, engines(burst), seed)
            assert refused(one) <= refused(other)
            assert min(one.free_mb.values()) >= 0
            if kind in HARD:
                assert burden(burst, one) == 0, (kind, seed)
            worse += burden(burst, one) > burden(burst, other)
            in_sum += burden(burst, one)
            engines_in_sum += burden(burst, other)
    assert worse <= seeds * len(Kind) / 100
    assert in_sum < engines_in_sum


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in KEYS], ids=lambda kind: kind.value)
def test_a_burst_ends_as_if_each_had_started_after_the_last_was_up(
    scene: Scene, kind: Kind, seeds: int
) -> None:
    """As good, if not the same: the engine counts the load of what is up in whole percents of a host."""
    for seed in range(seeds):
        burst = draw(seed, kind, Manner.IN_TURN, sizes=(4, 20))
        patiently = run_in_turn(burst, ours(burst), seed, scene, patiently=True)
        blindly = run_in_turn(burst, ours(burst), seed, scene, patiently=False)
        assert refused(blindly) == refused(patiently), seed
        assert burden(burst, blindly) <= burden(burst, patiently), seed


def test_a_decision_outlives_the_proxy_that_made_it_and_counts_in_another(scene: Scene) -> None:
    burst = next(
        burst for seed in range(100) if len((burst := draw(seed, Kind.SOFT_APART, Manner.PARALLEL)).vms) > 1
    )
    scene.publisher.publish(ours(burst))
    hosts = sorted(host.id for host in burst.state.hosts)
    weights = [["SoftAffinityWeight", 100]]
    with running_proxy(scene.publisher.environment) as proxy:
        first = proxy.runCostFunctions(weights, hosts, burst.vms[0], {})
    with running_proxy(scene.publisher.environment) as proxy:
        second = proxy.runCostFunctions(weights, hosts, burst.vms[1], {})
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert len({rank for _, rank, _ in first["result"]}) == 1
    assert sorted(rank for _, rank, _ in second["result"])[-2:] == [0, 1]


@pytest.mark.system
@pytest.mark.parametrize("published", [False, True], ids=["without an inventory", "with one"])
def test_starts_over_the_sdk_at_once(tmp_path: Path, published: bool) -> None:
    """Everything as it is in use: two of each of four groups, started by clients side by side."""
    policy = SchedulingPolicy(filters=("AffinityFilter",), weights={"SoftAffinityWeight": 100})
    names = [f"{letter}{number}" for letter in "abcd" for number in (1, 2, 3, 4)]
    state = build.snapshot(
        build.cluster(scheduling_policy=policy),
        *(build.host(f"h{number}") for number in range(1, 5)),
        *map(build.vm, names),
        build.group("a", build.SOFT_APART, "a1 a2 a3 a4"),
        build.group("b", build.SOFT_TOGETHER, "b1 b2 b3 b4"),
        build.group("c", build.APART, "c1 c2 c3 c4"),
        *(
            build.group(f"d{one}{other}", build.TOGETHER, f"d{one} d{other}")
            for one, other in pairwise("1234")
        ),
    )
    with running(tmp_path, state, time_scale=10) as world, ThreadPoolExecutor(4) as pool:
        if published:
            world.publish()
        homes = dict(zip(names, pool.map(world.start, names), strict=True))
    for letter, hosts in {"a": 4, "b": 1, "c": 4, "d": 1}.items():
        assert len({homes[name] for name in names if name.startswith(letter)}) == hosts, homes
