"""Hard groups that cannot be satisfied together: found if there are any, and the smallest set named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.feasibility import Feasibility, judge_groups
from tests.builders import (
    APART,
    CLUSTER,
    DISABLED,
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

VMS = ("a", "b", "c", "d")
HOSTS = ("h1", "h2", "h3")


def of(*parts: Part) -> Feasibility:
    hosts = () if any(getattr(part, "id", "") == "h1" for part in parts) else map(host, HOSTS)
    vms = (vm(name) for name in VMS if not any(getattr(part, "id", "") == name for part in parts))
    return judge_groups(snapshot(*hosts, *vms, *parts), CLUSTER)


def groups_of(found: Feasibility) -> list[tuple[str, ...]]:
    return [one.groups for one in found.contradictions]


def test_chain_of_positive_groups_against_a_negative_one_is_named_whole() -> None:
    found = of(
        group("p1", TOGETHER, "a b"),
        group("p2", TOGETHER, "b c"),
        group("n", APART, "a c"),
        group("other", APART, "c d"),
    )
    assert groups_of(found) == [("n", "p1", "p2")]
    assert found.contradictions[0].smallest


def test_soft_groups_never_contradict() -> None:
    assert of(group("p", SOFT_TOGETHER, "a b"), group("n", APART, "a b")).feasible is True


def test_members_of_a_positive_set_without_a_common_host() -> None:
    found = of(
        group("p", TOGETHER, "a b"),
        group("ha", vms="a", hosts_rule=TOGETHER, hosts="h1"),
        group("hb", vms="b", hosts_rule=TOGETHER, hosts="h2"),
    )
    assert groups_of(found) == [("ha", "hb", "p")]


def test_more_vms_to_keep_apart_than_hosts() -> None:
    assert groups_of(of(group("n", APART, "a b c d"))) == [("n",)]


def test_positive_set_too_large_for_any_host() -> None:
    large = [vm(name, memory_mb=40_000, guaranteed_mb=40_000) for name in ("a", "b")]
    assert groups_of(of(*large, group("p", TOGETHER, "a b"))) == [("p",)]


def test_pinning_counts() -> None:
    pinned = vm("a", "h1", migratable=False, pinned_hosts=("h1",))
    assert groups_of(of(pinned, group("n", vms="a", hosts_rule=APART, hosts="h1"))) == [("n",)]


def test_legacy_label_counts_below_4_4() -> None:
    parts = (label("l", "a", "h1", implicit=True), group("n", vms="a", hosts_rule=APART, hosts="h1"))
    assert groups_of(of(cluster(compatibility="4.3"), *parts)) == [("l", "n")]
    assert of(cluster(compatibility="4.7"), *parts).feasible is True


def test_each_part_of_the_cluster_is_judged_by_itself() -> None:
    found = of(
        group("p1", TOGETHER, "a b"),
        group("n1", APART, "a b"),
        group("p2", TOGETHER, "c d"),
        group("n2", APART, "c d"),
    )
    assert groups_of(found) == [("n1", "p1"), ("n2", "p2")]


def test_ended_budget_is_unknown_and_never_guessed() -> None:
    state = snapshot(*map(host, HOSTS), *map(vm, VMS), group("p", TOGETHER, "a b"), group("n", APART, "b c"))
    found = judge_groups(state, CLUSTER, steps=1)
    assert (found.feasible, found.unknown) == (None, (("p", "n"),))


@st.composite
def hard_clusters(draw: st.DrawFn) -> Snapshot:
    return snapshot(
        *map(host, HOSTS),
        *(
            vm(name, migratable=False, pinned_hosts=("h1",)) if draw(st.integers(0, 5)) == 0 else vm(name)
            for name in VMS
        ),
        *(
            group(
                f"g{number}",
                draw(st.sampled_from([TOGETHER, APART, APART, DISABLED])),
                " ".join(sorted(draw(st.sets(st.sampled_from(VMS), min_size=1, max_size=4)))),
                hosts_rule=draw(st.sampled_from([TOGETHER, APART, DISABLED, DISABLED])),
                hosts=" ".join(sorted(draw(st.sets(st.sampled_from(HOSTS), max_size=2)))),
            )
            for number in range(draw(st.integers(0, 5)))
        ),
    )


def can_hold(state: Snapshot, groups: Sequence[AffinityGroup]) -> bool:
    """Try every placement of all VMs."""
    mentioned = sorted({name for one in groups for name in one.vms})
    for chosen in product(HOSTS, repeat=len(mentioned)):
        at = dict(zip(mentioned, chosen, strict=True))
        if all(holds(one, at) for one in groups) and all(
            not one.pinned_hosts or at.get(one.id, "h1") in one.pinned_hosts for one in state.vms
        ):
            return True
    return False


def holds(one: AffinityGroup, at: dict[str, str]) -> bool:
    used = [at[name] for name in one.vms]
    if one.vms_rule.enabled and one.vms_rule.positive and len(set(used)) > 1:
        return False
    if one.vms_rule.enabled and not one.vms_rule.positive and len(set(used)) < len(used):
        return False
    if not one.hosts_rule.enabled or not one.hosts:
        return True
    return all((place in one.hosts) == one.hosts_rule.positive for place in used)


@given(hard_clusters())
def test_judgement_is_exact_and_names_the_smallest_contradiction(state: Snapshot) -> None:
    found = judge_groups(state, CLUSTER)
    assert found.feasible is can_hold(state, state.affinity_groups)
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
