"""Positive groups that share VMs, merged: against an oracle that walks from VM to VM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from ovirt_placement.rules.affinity.groups import (
    UnifiedGroup,
    as_the_engine_unifies,
    hard_positive_groups,
    unify,
)
from tests.builders import APART, DISABLED, SOFT_TOGETHER, TOGETHER, group, snapshot, vm

VMS = "abcdefgh"
STATE_VMS = tuple(vm(name) for name in VMS)


def test_group_that_comes_last_bridges_those_before_it() -> None:
    groups = (
        group("g1", TOGETHER, "a b"),
        group("g2", TOGETHER, "c d"),
        group("g3", TOGETHER, "b c"),
        group("g4", TOGETHER, "e f"),
    )
    assert hard_positive_groups(snapshot(*STATE_VMS, *groups)) == (
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
    assert hard_positive_groups(state) == ()
    assert [one.vms for one in unify(state, state.affinity_groups)] == [("a", "b"), ("c",)]


@given(st.lists(st.frozensets(st.sampled_from(VMS), max_size=4), max_size=7))
def test_vms_are_unified_exactly_if_a_chain_of_groups_links_them(chosen: list[frozenset[str]]) -> None:
    groups = [group(f"g{at}", TOGETHER, " ".join(sorted(names))) for at, names in enumerate(chosen)]
    found = hard_positive_groups(snapshot(*STATE_VMS, *groups))
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
