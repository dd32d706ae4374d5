"""Conflicts by the engine's types: what is reported, what is not, and what blocks saving."""

from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.group_changes import clashes_of
from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType, find_conflicts, judge_groups
from ovirt_placement.rules.affinity.constraints import asks_by_vm, block_of, gather
from ovirt_placement.rules.affinity.groups import hard_positive_group_of
from ovirt_placement.rules.elements.assignment import NOTHING, Block
from ovirt_placement.rules.elements.rule import Judgement
from tests.builders import (
    APART,
    CLUSTER,
    DISABLED,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    snapshot,
    vm,
)
from tests.placement.rules.strategies import is_violated

VMS = (vm("a"), vm("b"), vm("c"))
HOSTS = (host("h1"), host("h2"), host("h3"))


def conflicts_of(*groups: Part) -> tuple[Conflict, ...]:
    return find_conflicts(snapshot(*HOSTS, *VMS, *groups), CLUSTER)


def test_overlapping_host_groups_are_no_conflict_and_disjoint_hard_ones_block() -> None:
    def conflicting(rule: AffinityRule, hosts: str) -> tuple[Conflict, ...]:
        near = group("g1", vms="a", hosts_rule=TOGETHER, hosts="h1 h2")
        return conflicts_of(near, group("g2", vms="a", hosts_rule=rule, hosts=hosts))

    disjoint = Conflict(ConflictType.NO_COMMON_HOST, ("g1", "g2"), ("a",), ("h1", "h2", "h3"), savable=False)
    assert (conflicting(TOGETHER, "h2 h3"), conflicting(TOGETHER, "h3")) == ((), (disjoint,))
    assert conflicting(SOFT_TOGETHER, "h3") == (replace(disjoint, savable=True),)


def test_together_and_apart_blocks_only_between_hard_groups() -> None:
    for together, apart, savable in (
        (TOGETHER, APART, False),
        (SOFT_TOGETHER, APART, True),
        (TOGETHER, SOFT_APART, True),
        (SOFT_TOGETHER, SOFT_APART, True),
    ):
        (found,) = conflicts_of(group("p", together, "a b c"), group("n", apart, "a c"))
        assert found.type is ConflictType.TOGETHER_AGAINST_APART
        assert (found.groups, found.vms, found.negative_vms) == (("n",), ("a", "b", "c"), ("a", "c"))
        assert found.savable is savable


#: The host groups and the negative group that a random cluster has: members, then hosts.
_HOST_GROUPS = st.lists(
    st.tuples(
        st.sets(st.sampled_from("abcde"), min_size=1),
        st.sets(st.sampled_from(("h1", "h2", "h3")), min_size=1),
    ),
    max_size=4,
)


@given(_HOST_GROUPS, st.sets(st.sampled_from("abcde"), min_size=2))
def test_vms_apart_conflict_pair_by_pair_if_no_assignment_keeps_them_apart(
    wanted: list[tuple[set[str], set[str]]], kept_apart: set[str]
) -> None:
    vms = sorted(kept_apart)
    host_groups = [
        group(f"g{at}", vms=" ".join(members), hosts_rule=TOGETHER, hosts=" ".join(hosts))
        for at, (members, hosts) in enumerate(wanted)
    ]
    state = snapshot(*HOSTS, *map(vm, "abcde"), *host_groups, group("n", APART, " ".join(vms)))
    hosts_of = {
        one: {"h1", "h2", "h3"}.intersection(*(hosts for members, hosts in wanted if one in members))
        for one in vms
    }
    bound = [one for one in vms if any(one in members for members, _ in wanted)]
    fits = any(len(set(chosen)) == len(vms) for chosen in product(*(sorted(hosts_of[one]) for one in vms)))
    clashing = [pair for pair in combinations(bound, 2) if hosts_of[pair[0]] & hosts_of[pair[1]]]

    found = [one for one in find_conflicts(state, CLUSTER) if one.type is ConflictType.HOSTS_AGAINST_APART]

    if fits or not clashing:
        assert found == []
    else:
        (only,) = found
        assert set(only.vms) == {one for pair in clashing for one in pair}
        named = {f"g{at}" for at, (members, _) in enumerate(wanted) if members & set(only.vms)}
        assert set(only.groups) == {"n", *named}
        assert set(only.hosts) == {
            host for one, other in clashing for host in hosts_of[one] & hosts_of[other]
        }


def test_thousands_of_vms_alike_make_one_conflict_of_each_kind() -> None:
    many = [f"v{number}" for number in range(2_000)]
    state = snapshot(
        *HOSTS, *map(vm, many), group("n", SOFT_APART, " ".join(many)),
        group("h", vms=" ".join(many), hosts_rule=TOGETHER, hosts="h1 h2"),
        group("p", TOGETHER, " ".join(many)),
    )  # fmt: skip
    clashes = clashes_of(state, state.group_by_id["n"])
    assert [(one.type, one.groups, len(one.vms)) for one in clashes] == [
        (ConflictType.HOSTS_AGAINST_APART, ("h", "n"), 2_000),
        (ConflictType.TOGETHER_AGAINST_APART, ("n", "p"), 2_000),
    ]


def block_with(together: str, *parts: Part) -> Block:
    named = {part.id for part in parts}
    state = snapshot(*HOSTS, *(vm(name) for name in "abc" if name not in named), *parts)
    return block_of(state, tuple(together.split()), asks_by_vm(state), NOTHING)


PINNED = {"migratable": False, "pinned_hosts": ("h1", "h2")}
APART_B, APART_C = group("n", APART, "a b"), group("n", APART, "a c")


@pytest.mark.parametrize(
    ("parts", "allowed"),
    [
        pytest.param((), None, id="without rules any host will do"),
        pytest.param(
            (group("g", SOFT_APART, "a b", hosts_rule=SOFT_TOGETHER, hosts="h1"),), None, id="soft groups"
        ),
        pytest.param((APART_B,), frozenset(), id="together and apart"),
        pytest.param((APART_C, group("m", APART, "b c")), None, id="apart from a third"),
        pytest.param((vm("a", "h1", **PINNED),), {"h1", "h2"}, id="pinned"),
        pytest.param((vm("a", "h1", pinned_hosts=("h1", "h2")),), None, id="pinned, and may migrate"),
        pytest.param((vm("a", "h1", migratable=False),), None, id="may not migrate, and is not pinned"),
        pytest.param((group("g", vms="a", hosts_rule=TOGETHER),), None, id="no hosts: not configured"),
        pytest.param(
            (cluster(compatibility="4.3"), label("l", "a", implicit=True)), frozenset(), id="legacy label"
        ),
    ],
)
def test_each_part_allows_a_block_its_hosts(parts: tuple[Part, ...], allowed: set[str] | None) -> None:
    assert block_with("a b", *parts).allowed == allowed


def test_all_that_binds_a_vm_of_the_block_binds_the_block() -> None:
    found = block_with(
        "a b",
        group("wide", vms="a", hosts_rule=TOGETHER, hosts="h1 h2"),
        group("wide too", vms="b", hosts_rule=TOGETHER, hosts="h2 h3"),
        group("off", vms="b", hosts_rule=APART, hosts="h3"),
        APART_C,
    )
    assert (found.allowed, found.forbidden, found.apart) == ({"h2"}, {"h3"}, {"n"})


def test_vms_are_gathered_as_positive_groups_tie_them_through_vms_that_nobody_asked_about() -> None:
    state = snapshot(*HOSTS, *map(vm, "abcd"), group("p", TOGETHER, "a b"), group("q", TOGETHER, "b c"))
    assert list(gather("cda", hard_positive_group_of(state))) == [("c", "a"), ("d",)]


NAMES = ("a", "b", "c", "d")
PLACES = ("h1", "h2", "h3")


def judged(*parts: Part) -> Judgement:
    hosts = () if any(getattr(part, "id", "") == "h1" for part in parts) else map(host, PLACES)
    vms = (vm(name) for name in NAMES if not any(getattr(part, "id", "") == name for part in parts))
    return judge_groups(snapshot(*hosts, *vms, *parts), CLUSTER)


def groups_of(found: Judgement) -> list[tuple[str, ...]]:
    return [one.groups for one in found.contradictions]


def test_soft_groups_never_contradict() -> None:
    assert judged(group("p", SOFT_TOGETHER, "a b"), group("n", APART, "a b")) == Judgement((), ())


def test_positive_set_too_large_for_any_host() -> None:
    large = [vm(name, memory_mb=40_000, guaranteed_mb=40_000) for name in ("a", "b")]
    assert groups_of(judged(*large, group("p", TOGETHER, "a b"))) == [("p",)]


def test_legacy_label_counts_below_4_4() -> None:
    parts = (label("l", "a", "h1", implicit=True), group("n", vms="a", hosts_rule=APART, hosts="h1"))
    assert groups_of(judged(cluster(compatibility="4.3"), *parts)) == [("l", "n")]
    assert judged(cluster(compatibility="4.7"), *parts) == Judgement((), ())


def test_each_part_of_the_cluster_is_judged_by_itself() -> None:
    first = group("p1", TOGETHER, "a b"), group("n1", APART, "a b")
    second = group("p2", TOGETHER, "c d"), group("n2", APART, "c d")
    assert groups_of(judged(*first, *second)) == [("n1", "p1"), ("n2", "p2")]


def test_ended_budget_is_unknown_and_never_guessed() -> None:
    groups = group("p", TOGETHER, "a b"), group("n", APART, "b c")
    state = snapshot(*map(host, PLACES), *map(vm, NAMES), *groups)
    found = judge_groups(state, CLUSTER, steps=1)
    assert (found.contradictions, [[one.id for one in part] for part in found.unknown]) == ((), [["p", "n"]])


@st.composite
def hard_clusters(draw: st.DrawFn) -> Snapshot:
    return snapshot(
        *map(host, PLACES),
        *(
            vm(name, migratable=False, pinned_hosts=("h1",)) if draw(st.integers(0, 5)) == 0 else vm(name)
            for name in NAMES
        ),
        *(
            group(
                f"g{number}",
                draw(st.sampled_from([TOGETHER, APART, APART, DISABLED])),
                " ".join(sorted(draw(st.sets(st.sampled_from(NAMES), min_size=1, max_size=4)))),
                hosts_rule=draw(st.sampled_from([TOGETHER, APART, DISABLED, DISABLED])),
                hosts=" ".join(sorted(draw(st.sets(st.sampled_from(PLACES), max_size=2)))),
            )
            for number in range(draw(st.integers(0, 5)))
        ),
    )


def can_hold(state: Snapshot, groups: Sequence[AffinityGroup]) -> bool:
    """Try every placement of all VMs."""
    mentioned = sorted({name for one in groups for name in one.vms})
    for chosen in product(PLACES, repeat=len(mentioned)):
        at = dict(zip(mentioned, chosen, strict=True))
        if not any(is_violated(one, [at[name] for name in one.vms], one.hosts) for one in groups) and all(
            not one.pinned_hosts or at.get(one.id, "h1") in one.pinned_hosts for one in state.vms
        ):
            return True
    return False


@given(hard_clusters())
def test_judgement_is_exact_and_names_the_smallest_contradiction(state: Snapshot) -> None:
    found = judge_groups(state, CLUSTER)
    assert found.unknown == ()
    assert (not found.contradictions) is can_hold(state, state.affinity_groups)
    sizes = [
        size
        for size in range(1, len(state.affinity_groups) + 1)
        if any(not can_hold(state, chosen) for chosen in combinations(state.affinity_groups, size))
    ]
    named = {one.id: one for one in state.affinity_groups}
    for one in found.contradictions:
        assert one.smallest
        assert not can_hold(state, [named[name] for name in one.groups])
    if sizes:
        assert min(len(one.groups) for one in found.contradictions) == min(sizes)
