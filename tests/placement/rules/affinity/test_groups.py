"""Affinity groups: those that share VMs merged, soft ones that no unit weighs, and their weights."""

from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.placement import why
from ovirt_placement.model import AffinityGroup, Cluster, Pending, SchedulingPolicy, Snapshot
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.affinity.filters import UNIT_MISSING, missing_units
from ovirt_placement.rules.affinity.groups import (
    GROUP_VIOLATED_BY_VM,
    GROUP_VIOLATED_HERE,
    UnifiedGroup,
    as_the_engine_unifies,
    chained_peers,
    hard_positive_group_of,
    unify,
)
from ovirt_placement.rules.affinity.weights import POSITIVE_PEERS_HERE, rank_by_hosts, rank_by_vms
from ovirt_placement.rules.elements.rule import Ranking
from ovirt_placement.rules.elements.verdict import Reason, Request
from ovirt_placement.rules.placement_keys.units import rank_by_chains
from tests.builders import (
    APART,
    CLUSTER,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    snapshot,
    vm,
)
from tests.placement.rules.strategies import HOSTS, VMS, hosts_of, members_of, snapshots
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import Publisher

ASKED = ("h1", "h2", "h3")
THREE_HOSTS = tuple(map(host, ASKED))
NAMES = "abcdefgh"
STATE_VMS = tuple(map(vm, NAMES))


def unified(state: Snapshot) -> tuple[UnifiedGroup, ...]:
    return tuple(dict.fromkeys(hard_positive_group_of(state).values()))


def test_group_that_comes_last_bridges_those_before_it() -> None:
    groups = (
        group("g1", TOGETHER, "a b"), group("g2", TOGETHER, "c d"), group("g3", TOGETHER, "b c"),
        group("g4", TOGETHER, "e f"), group("alone", TOGETHER, "e"),
    )  # fmt: skip
    assert unified(snapshot(*STATE_VMS, *groups)) == (
        UnifiedGroup(("a", "b", "c", "d"), ("g1", "g2", "g3")),
        UnifiedGroup(("e", "f"), ("g4",)),
    )


def test_who_asks_chooses_the_groups_and_vms_of_negative_ones_stay_alone() -> None:
    groups = (
        group("soft", SOFT_TOGETHER, "a b"), group("apart", APART, "b c"), group("off", DISABLED, "d e"),
    )  # fmt: skip
    state = snapshot(*STATE_VMS, *groups)
    assert unified(state) == ()
    assert [one.vms for one in unify(state, state.affinity_groups)] == [("a", "b"), ("c",)]


@given(st.lists(st.frozensets(st.sampled_from(NAMES), max_size=4), max_size=7))
def test_vms_are_unified_exactly_if_a_chain_of_groups_links_them(chosen: list[frozenset[str]]) -> None:
    groups = [group(f"g{at}", TOGETHER, " ".join(sorted(names))) for at, names in enumerate(chosen)]
    found = unified(snapshot(*STATE_VMS, *groups))
    for name in {name for names in chosen for name in names}:
        linked = {name}
        for _ in chosen:
            linked |= {near for names in chosen if names & linked for near in names}
        (own,) = (one for one in found if name in one.vms)
        assert set(own.vms) == linked
        tying = {f"g{at}" for at, names in enumerate(chosen) if names & linked and len(names) > 1}
        assert set(own.groups) == tying


#: Ids of which many share a bin of a hash table, small or large.
IDS = st.integers(0, 200).map(lambda number: str(UUID(int=number * 4)))


def in_a_hash_set(ids: Iterable[str]) -> list[str]:
    """By their bins in a table of the size that this many ids make it grow to; in a bin, as they came."""
    kept = list(dict.fromkeys(ids))
    bins = 16
    while len(kept) > bins * 3 / 4:
        bins *= 2
    return sorted(kept, key=lambda one: bin_of(one, bins))


def bin_of(one: str, bins: int) -> int:
    high, low = divmod(UUID(one).int, 2**64)
    upper, lower = divmod(high ^ low, 2**32)
    return (upper ^ lower ^ (upper ^ lower) >> 16) % bins


@given(st.lists(st.lists(IDS, min_size=1, max_size=5, unique=True), min_size=1, max_size=5))
def test_the_engine_fills_a_new_hash_set_from_those_that_a_group_ties(groups: list[list[str]]) -> None:
    chained = [groups[0], *([groups[0][0], *vms] for vms in groups[1:])]
    # A table with nine ids in a bin grows before it is full.
    assume(max(Counter(bin_of(one, 16) for vms in groups for one in set(vms)).values()) < 9)
    whole: list[str] = []
    for vms in chained:
        whole = in_a_hash_set(one for vm in vms for one in (whole if vm in whole else [vm]))
    assert list(as_the_engine_unifies(chained)) == whole


BOTH = group("g", SOFT_TOGETHER, "a b", hosts_rule=SOFT_TOGETHER, hosts="h1")


def with_units(**weights: int) -> Cluster:
    return cluster(scheduling_policy=SchedulingPolicy(weights=weights))


@pytest.mark.parametrize(
    ("policy", "asking", "missing"),
    [
        (with_units(), BOTH, ["SoftAffinityWeight", "HostAffinityWeight"]),
        (with_units(SoftAffinityWeight=1), BOTH, ["HostAffinityWeight"]),
        # Factor 0 is as good as missing, the engine's own weight does as well.
        (with_units(SoftAffinityWeight=0, HostAffinityWeight=1), BOTH, ["SoftAffinityWeight"]),
        (replace(with_units(), policy={"vm_affinity_weight": 1}), BOTH, ["HostAffinityWeight"]),
        # Nothing is missing where the policy is not known, or no soft rule asks.
        (cluster(), BOTH, []),
        (with_units(), group("g", TOGETHER, "a b", hosts_rule=SOFT_TOGETHER), []),
        (with_units(), group("g", SOFT_TOGETHER, "a"), []),
    ],
)
def test_each_soft_half_asks_for_its_unit(policy: Cluster, asking: AffinityGroup, missing: list[str]) -> None:
    state = snapshot(policy, host("h1"), vm("a"), vm("b"), asking)
    assert missing_units(state, "a") == tuple(Reason(UNIT_MISSING, "g", "a", unit=unit) for unit in missing)


def marked(state: Snapshot, *hosts: str) -> Snapshot:
    return replace(state, draining_hosts=hosts)


def test_why_says_so() -> None:
    state = marked(snapshot(*THREE_HOSTS, vm("new")), "h2")
    found = {one.host.id: one for one in why(state, state.vm_by_id["new"], state.hosts).hosts}
    assert [host for host, one in found.items() if one.accepted] == ["h1", "h3"]
    assert [reason.sentence for reason in found["h2"].reasons] == [
        "the host is being emptied for maintenance"
    ]


@pytest.mark.parametrize("name", StrategyName)
def test_no_plan_goes_there(name: StrategyName) -> None:
    crowded = snapshot(*THREE_HOSTS, vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    plan = make_plan(marked(crowded, "h2"), CLUSTER, strategy=strategy(name))
    assert [step.target for step in plan.steps] == ["h3"]


@pytest.mark.system
def test_the_unit_refuses_it_and_gives_way_where_a_drain_would_never_end(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    state = snapshot(
        host("h1", status="preparing_for_maintenance"), host("h2"), host("h3"), host("h4"), vm("a", "h1"),
        vm("b", "h2"), vm("c", "h3"), vm("d", "h4"), vm("new"), group("apart", APART, "a b c d"),
    )  # fmt: skip
    with running_proxy(publisher.environment) as proxy:

        def left(vm_id: str, *hosts: str) -> list[str]:
            answer = proxy.runFilters(["AffinityFilter", "HostAffinityFilter"], list(hosts), vm_id, {})
            assert answer["result_code"] == 0
            found: list[str] = answer["result"]
            return found

        publisher.publish(marked(state, "h4"))
        assert left("a", "h2", "h3") == ["h2", "h3"]
        assert left("new", "h3", "h4") == ["h3"]
        up = replace(state.hosts[0], status="up")
        publisher.publish(marked(replace(state, hosts=(up, *state.hosts[1:])), "h4"))
        assert left("a", "h2", "h3") == []


# -- The weights of affinity groups: refined orders, against oracles that compare hosts in pairs.
def ranks(state: Snapshot, vms: str = "new", weigh: Ranking = rank_by_vms) -> dict[str, int]:
    return {weight.host: weight.rank for weight in weigh(state, Request(tuple(vms.split()), ASKED))}


def with_policy(state: Snapshot, *filters: str) -> Snapshot:
    """The same, where the cluster's policy is known to have these filters of ours and no other."""
    policy = SchedulingPolicy(filters=filters)
    return replace(state, clusters=tuple(replace(one, scheduling_policy=policy) for one in state.clusters))


RIVALS = (*THREE_HOSTS, vm("new"), vm("a", "h1"), vm("b", "h2"))


def test_hard_stands_above_soft_only_where_no_filter_has_judged_the_hosts() -> None:
    hard, soft = group("hard", APART, "new a"), group("soft", SOFT_APART, "new b", priority=2)
    state = snapshot(*RIVALS, hard, soft)
    assert ranks(state) == {"h3": 0, "h1": 1, "h2": 2}
    assert ranks(with_policy(state)) == {"h3": 0, "h2": 1, "h1": 2}
    assert ranks(with_policy(state, "AffinityFilter")) == {"h3": 0, "h1": 1, "h2": 2}


def test_failover_host_comes_last_even_with_peers() -> None:
    hosts = host("h1", failover=True), host("h2"), host("h3")
    state = snapshot(*hosts, vm("new"), vm("a", "h1"), group("g", SOFT_TOGETHER, "new a"))
    assert ranks(state) == {"h2": 0, "h3": 0, "h1": 1}


def test_priorities_that_differ_in_the_eighth_decimal_are_equal() -> None:
    first, second = group("g1", SOFT_APART, "new a", priority=1.00000001), group("g2", SOFT_APART, "new b")
    assert ranks(snapshot(*RIVALS, first, second)) == {"h3": 0, "h1": 1, "h2": 1}


def test_weight_names_the_groups_violated_and_the_peers_gained() -> None:
    state = snapshot(
        *THREE_HOSTS, vm("new"), vm("friend", "h1"), vm("foe", "h1"),
        group("near", SOFT_TOGETHER, "new friend"), group("far", SOFT_APART, "new foe", priority=2.0),
    )  # fmt: skip
    at_h1, at_h2, _ = rank_by_vms(state, Request(("new",), ASKED))
    assert at_h1.reasons == (
        Reason(GROUP_VIOLATED_BY_VM, "far", "foe", number=2.0),
        Reason(POSITIVE_PEERS_HERE, number=1),
    )
    assert at_h2.reasons == (Reason(GROUP_VIOLATED_HERE, "near", None, number=1.0),)


def more_violated(one: Iterable[float], other: Iterable[float]) -> int:
    """Below zero if the first of two hosts is better, by the priorities of the groups violated on each."""
    here, there = Counter(one), Counter(other)
    differing = (here[priority] - there[priority] for priority in sorted({*here, *there}, reverse=True))
    return next(filter(None, differing), 0)


def peers_on(state: Snapshot, one: AffinityGroup, vms: set[str], place: str) -> set[str]:
    """Other members of a group that are, or will be, on a host."""
    going = {name: {entry.host for entry in state.pending if entry.vm == name} for name in state.vm_by_id}
    others = members_of(state, one) - vms
    return {name for name in others if place in (going[name] or {state.vm_by_id[name].host})}


def compare_peers(state: Snapshot, vms: set[str], one: str, other: str) -> int:
    """Below zero if the first host is strictly better: as the engine compares, then by negative peers."""
    groups = [
        each for each in state.affinity_groups if each.vms_rule.enabled and vms & members_of(state, each)
    ]

    def violated(place: str) -> list[float]:
        return [
            each.priority
            for each in groups
            if bool(peers_on(state, each, vms, place)) != each.vms_rule.positive
        ]

    def peers(place: str, *, positive: bool) -> set[str]:
        some = (peers_on(state, each, vms, place) for each in groups if each.vms_rule.positive is positive)
        return set().union(*some)

    def burden(place: str) -> tuple[int, int, int]:
        near = peers(place, positive=True)
        fixed = {vm.id for vm in state.vms if not vm.migratable or vm.hosted_engine}
        return -len(near & fixed), -len(near), len(peers(place, positive=False))

    better = (burden(one) > burden(other)) - (burden(one) < burden(other))
    return more_violated(violated(one), violated(other)) or better


@given(snapshots(most_groups=4), st.sets(st.sampled_from(VMS), min_size=1, max_size=2))
def test_order_is_the_engines_and_ties_fall_to_fewer_negative_peers(state: Snapshot, vms: set[str]) -> None:
    found = {weight.host: weight.rank for weight in rank_by_vms(state, Request(tuple(vms), HOSTS))}
    for one, other in product(HOSTS, repeat=2):
        assert (found[one] < found[other]) == (compare_peers(state, vms, one, other) < 0)


@given(snapshots(), st.sampled_from(VMS), st.booleans())
def test_ranks_are_dense_and_every_host_has_one(state: Snapshot, vm_id: str, above: bool) -> None:
    asked = (*HOSTS, "unknown")
    weights = rank_by_vms(with_policy(state) if above else state, Request((vm_id,), asked))
    assert tuple(weight.host for weight in weights) == asked
    found = {weight.rank for weight in weights}
    assert found == set(range(len(found)))


def test_the_weight_of_a_host_says_what_is_violated() -> None:
    listed = group("g", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h2", priority=3.0)
    at_h1, at_h2, _ = rank_by_hosts(snapshot(*THREE_HOSTS, vm("a"), listed), Request(("a",), ASKED))
    assert (at_h1.reasons, at_h2.reasons) == ((Reason(GROUP_VIOLATED_HERE, "g", number=3.0),), ())


@given(snapshots(most_groups=4), st.sets(st.sampled_from(VMS), min_size=1, max_size=2))
def test_order_by_hosts_is_its_definition_and_several_vms_add_up(state: Snapshot, vms: set[str]) -> None:
    def violated(vm_id: str, place: str) -> list[float]:
        return [
            one.priority
            for one in state.affinity_groups
            if vm_id in members_of(state, one)
            and one.hosts_rule.soft
            and (place in hosts_of(state, one)) != one.hosts_rule.positive
        ]

    def better(place: str) -> int:
        """For how many VMs, in sum, how many hosts are better."""
        here = product(vms, HOSTS)
        return sum(more_violated(violated(one, other), violated(one, place)) < 0 for one, other in here)

    found = {weight.host: weight.rank for weight in rank_by_hosts(state, Request(tuple(vms), HOSTS))}
    for one, other in product(HOSTS, repeat=2):
        assert (found[one] < found[other]) == (better(one) < better(other))


#: a and c run together through b, which is down; s is of a's group alone.
CHAIN = (
    group("ab", TOGETHER, "a b"), group("bc", TOGETHER, "b c"), group("soft", SOFT_TOGETHER, "a s"),
    group("apart", APART, "c n"),
)  # fmt: skip


def chain(**on: str) -> Snapshot:
    return snapshot(*THREE_HOSTS, *(vm(name, on.get(name)) for name in "abcsn"), *CHAIN)


def ranks_of_chain(state: Snapshot, name: str = "c") -> list[int]:
    return list(ranks(state, name, rank_by_chains).values())


def expecting(state: Snapshot, name: str, at: str) -> Snapshot:
    return replace(state, pending=(*state.pending, Pending(name, at, 1024, expected=True)))


FREE_MB = zip(ASKED, (8000, 9000, 9500), strict=True)
ROOMY = replace(chain(), hosts=tuple(host(name, free_mb=mb) for name, mb in FREE_MB))


@pytest.mark.parametrize(
    ("state", "name", "expected"),
    [
        pytest.param(chain(a="h2"), "c", [1, 0, 1], id="a VM behind one that is down"),
        pytest.param(expecting(chain(), "a", "h3"), "c", [1, 1, 0], id="where one is expected"),
        pytest.param(chain(a="h2"), "b", [0, 0, 0], id="of its own groups, which the engine sees, hosts tie"),
        pytest.param(chain(s="h2"), "s", [0, 0, 0], id="and of a soft one"),
        pytest.param(ROOMY, "c", [1, 1, 0], id="the first goes where most memory is left"),
        pytest.param(expecting(ROOMY, "s", "h3"), "c", [1, 0, 1], id="but for what is expected there"),
        pytest.param(expecting(ROOMY, "c", "h1"), "c", [1, 1, 0], id="unless that is itself"),
        pytest.param(chain(c="h1"), "c", [0, 0, 0], id="of one that runs alone, its chain down, hosts tie"),
        pytest.param(expecting(chain(), "n", "h1"), "c", [0, 0, 0], id="the engine alone knows a peer"),
    ],
)  # fmt: skip
def test_hosts_by_chains(state: Snapshot, name: str, expected: list[int]) -> None:
    assert ranks_of_chain(state, name) == expected


def test_of_a_chain_that_is_torn_one_leaves_for_where_memory_is_left() -> None:
    assert chained_peers(chain(), "b") == ()
    leaves = Request(("c",), ("h2", "h3"))
    assert [one.rank for one in rank_by_chains(chain(a="h1", c="h1"), leaves)] == [1, 0]


def test_it_leaves_the_first_to_the_keys_of_the_vm_whose_weight_leads_as_well() -> None:
    weights = {"HardAffinityWeight": 100, "PlacementKeyWeight": 100}
    policy = SchedulingPolicy(filters=(), weights=weights)
    keyed = replace(chain(), clusters=(cluster(scheduling_policy=policy),))
    assert sorted(ranks_of_chain(keyed)) == [0, 1, 1], "it has no keys"
    vms = tuple(replace(one, custom_properties={"placement_keys": "Repel1:1:-100"}) for one in keyed.vms)
    assert ranks_of_chain(replace(keyed, vms=vms)) == [0, 0, 0]
    by_engine = Request(("c",), ASKED, parameters={"placement_tie": "engine"})
    found = rank_by_chains(replace(keyed, vms=vms), by_engine)
    assert sorted(one.rank for one in found) == [0, 1, 1], "the key weight may tie"
