"""Conflicts by the engine's types: what is reported, what is not, and what blocks saving."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.groups.check import clashes_of
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType, find_conflicts
from tests.builders import (
    APART,
    CLUSTER,
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

VMS = (vm("a"), vm("b"), vm("c"))
HOSTS = (host("h1"), host("h2"), host("h3"))


def of(*groups: Part) -> tuple[Conflict, ...]:
    return find_conflicts(snapshot(*HOSTS, *VMS, *groups), CLUSTER)


def test_overlapping_host_groups_are_no_conflict_and_disjoint_hard_ones_block() -> None:
    near = group("g1", vms="a", hosts_rule=TOGETHER, hosts="h1 h2")
    assert of(near, group("g2", vms="a", hosts_rule=TOGETHER, hosts="h2 h3")) == ()
    disjoint = group("g2", vms="a", hosts_rule=TOGETHER, hosts="h3")
    expected = Conflict(ConflictType.NO_COMMON_HOST, ("g1", "g2"), ("a",), ("h1", "h2", "h3"), savable=False)
    assert of(near, disjoint) == (expected,)


def test_disjoint_host_groups_of_which_one_is_soft_are_a_warning() -> None:
    (found,) = of(
        group("g1", vms="a", hosts_rule=TOGETHER, hosts="h1"),
        group("g2", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h2"),
    )
    assert (found.type, found.savable) == (ConflictType.NO_COMMON_HOST, True)


def test_vms_apart_with_a_common_host_conflict_only_if_they_cannot_differ() -> None:
    apart = group("n", APART, "a b")
    roomy = group("g1", vms="a", hosts_rule=TOGETHER, hosts="h1 h2")
    narrow = group("g2", vms="b", hosts_rule=TOGETHER, hosts="h1")
    assert of(apart, roomy, narrow) == ()
    crowded = group("g1", vms="a", hosts_rule=TOGETHER, hosts="h1")
    unrelated = group("g3", vms="c", hosts_rule=TOGETHER, hosts="h1")
    assert of(apart, crowded, narrow, unrelated) == (
        Conflict(ConflictType.HOSTS_AGAINST_APART, ("g1", "g2", "n"), ("a", "b"), ("h1",)),
    )


def test_one_host_group_that_holds_both_vms_apart_is_found_too() -> None:
    both = group("g1", vms="a b", hosts_rule=TOGETHER, hosts="h1")
    assert of(group("n", APART, "a b"), both) == (
        Conflict(ConflictType.HOSTS_AGAINST_APART, ("g1", "n"), ("a", "b"), ("h1",)),
    )


def test_together_and_apart_blocks_only_between_hard_groups() -> None:
    for together, apart, savable in (
        (TOGETHER, APART, False),
        (SOFT_TOGETHER, APART, True),
        (TOGETHER, SOFT_APART, True),
        (SOFT_TOGETHER, SOFT_APART, True),
    ):
        (found,) = of(group("p", together, "a b c"), group("n", apart, "a c"))
        assert found.type is ConflictType.TOGETHER_AGAINST_APART
        assert (found.groups, found.vms, found.negative_vms) == (("n",), ("a", "b", "c"), ("a", "c"))
        assert found.savable is savable


def test_member_of_another_cluster_takes_no_part() -> None:
    state = snapshot(
        cluster(),
        cluster("cluster2"),
        *HOSTS,
        *VMS,
        vm("x", cluster="cluster2"),
        label("l", "x"),
        group("p", TOGETHER, "a", vm_labels=("l",)),
        group("n", APART, "a", vm_labels=("l",)),
    )
    assert find_conflicts(state, CLUSTER) == ()


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
        assert set(only.hosts) == {
            host for one, other in clashing for host in hosts_of[one] & hosts_of[other]
        }


def test_thousands_of_vms_alike_make_one_conflict_of_each_kind() -> None:
    many = [f"v{number}" for number in range(2_000)]
    state = snapshot(
        *HOSTS,
        *map(vm, many),
        group("n", SOFT_APART, " ".join(many)),
        group("h", vms=" ".join(many), hosts_rule=TOGETHER, hosts="h1 h2"),
        group("p", TOGETHER, " ".join(many)),
    )
    clashes = clashes_of(state, state.group_by_id["n"])
    assert [(one.type, one.groups, len(one.vms)) for one in clashes.own] == [
        (ConflictType.HOSTS_AGAINST_APART, ("h", "n"), 2_000),
        (ConflictType.TOGETHER_AGAINST_APART, ("n", "p"), 2_000),
    ]
