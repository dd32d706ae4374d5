"""What was looked up in one snapshot is looked up in the next, and nothing else."""

from __future__ import annotations

from ovirt_placement.rules.index import prepare
from ovirt_placement.rules.membership import groups_of, members
from ovirt_placement.rules.unified_groups import hard_positive_group_of
from tests.builders import TOGETHER, group, host, snapshot, vm


def test_look_ups_are_made_again_from_the_new_snapshot() -> None:
    old = snapshot(host("h"), vm("a", "h"), vm("b", "h"), group("g", TOGETHER, "a b"))
    new = snapshot(host("h"), vm("a", "h"), vm("b", "h"), vm("c", "h"), group("g", TOGETHER, "b c"))
    asked = (groups_of, hard_positive_group_of)
    for look_up in asked:
        look_up(old)
    prepare(new, like=old)
    assert list(new.__dict__) == list(old.__dict__)
    fresh = snapshot(*new.hosts, *new.vms, *new.affinity_groups)
    ready = [look_up(new) for look_up in asked]
    assert list(new.__dict__) == list(old.__dict__), "nothing was left to be looked up"
    assert ready == [look_up(fresh) for look_up in asked]
    assert members(new)["g"] == ("b", "c")


def test_nothing_is_looked_up_that_nobody_asked_for() -> None:
    old, new = snapshot(host("h")), snapshot(host("h"))
    prepare(new, like=old)
    assert not new.__dict__
