"""Positive groups that share VMs, merged: against an oracle that walks from VM to VM."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.placement import why
from ovirt_placement.model import AffinityGroup, Cluster, SchedulingPolicy, Snapshot
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.affinity.filters import UNIT_MISSING, missing_units
from ovirt_placement.rules.affinity.groups import (
    UnifiedGroup,
    as_the_engine_unifies,
    hard_positive_group_of,
    unify,
)
from ovirt_placement.rules.elements.verdict import Reason
from tests.builders import (
    APART,
    CLUSTER,
    DISABLED,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    snapshot,
    vm,
)
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import Publisher

VMS = "abcdefgh"
STATE_VMS = tuple(vm(name) for name in VMS)


def unified(state: Snapshot) -> tuple[UnifiedGroup, ...]:
    return tuple(dict.fromkeys(hard_positive_group_of(state).values()))


def test_group_that_comes_last_bridges_those_before_it() -> None:
    groups = (
        group("g1", TOGETHER, "a b"),
        group("g2", TOGETHER, "c d"),
        group("g3", TOGETHER, "b c"),
        group("g4", TOGETHER, "e f"),
    )
    assert unified(snapshot(*STATE_VMS, *groups)) == (
        UnifiedGroup(("a", "b", "c", "d"), ("g1", "g2", "g3")),
        UnifiedGroup(("e", "f"), ("g4",)),
    )


def test_who_asks_chooses_the_groups_and_vms_of_negative_ones_stay_alone() -> None:
    groups = (
        group("soft", SOFT_TOGETHER, "a b"),
        group("apart", APART, "b c"),
        group("off", DISABLED, "d e"),
    )
    state = snapshot(*STATE_VMS, *groups)
    assert unified(state) == ()
    assert [one.vms for one in unify(state, state.affinity_groups)] == [("a", "b"), ("c",)]


@given(st.lists(st.frozensets(st.sampled_from(VMS), max_size=4), max_size=7))
def test_vms_are_unified_exactly_if_a_chain_of_groups_links_them(chosen: list[frozenset[str]]) -> None:
    groups = [group(f"g{at}", TOGETHER, " ".join(sorted(names))) for at, names in enumerate(chosen)]
    found = unified(snapshot(*STATE_VMS, *groups))
    for name in {name for names in chosen for name in names}:
        linked = {name}
        for _ in chosen:
            linked |= {near for names in chosen if names & linked for near in names}
        (own,) = (one for one in found if name in one.vms)
        assert set(own.vms) == linked
        assert set(own.groups) == {f"g{at}" for at, names in enumerate(chosen) if names & linked}


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


HOSTS = (host("h1"), host("h2"), host("h3"))


def marked(state: Snapshot, *hosts: str) -> Snapshot:
    return replace(state, draining_hosts=hosts)


def test_why_says_so() -> None:
    state = marked(snapshot(*HOSTS, vm("new")), "h2")
    found = {one.host.id: one for one in why(state, state.vm_by_id["new"], state.hosts).hosts}
    assert [host for host, one in found.items() if one.accepted] == ["h1", "h3"]
    assert [reason.sentence for reason in found["h2"].reasons] == [
        "the host is being emptied for maintenance"
    ]


@pytest.mark.parametrize("name", StrategyName)
def test_no_plan_goes_there(name: StrategyName) -> None:
    crowded = snapshot(*HOSTS, vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    plan = make_plan(marked(crowded, "h2"), CLUSTER, strategy=strategy(name))
    assert [step.target for step in plan.steps] == ["h3"]


@pytest.mark.system
def test_the_unit_refuses_it_and_gives_way_where_a_drain_would_never_end(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    state = snapshot(
        host("h1", status="preparing_for_maintenance"),
        host("h2"),
        host("h3"),
        host("h4"),
        vm("a", "h1"),
        vm("b", "h2"),
        vm("c", "h3"),
        vm("d", "h4"),
        vm("new"),
        group("apart", APART, "a b c d"),
    )
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
