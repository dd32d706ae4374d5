"""Positive groups that share VMs, merged: against an oracle that walks from VM to VM."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.affinity.unified_groups import UnifiedGroup, hard_positive_groups, unify
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
