"""What was looked up in one snapshot is looked up in the next, and nothing else."""

from __future__ import annotations

from fractions import Fraction

from ovirt_placement.lookups.index import prepare, share
from ovirt_placement.rules.affinity.groups import groups_of, hard_positive_group_of, members
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource
from ovirt_placement.rules.placement_keys.host_table import host_table
from ovirt_placement.rules.placement_keys.keys import DEFAULTS, KeySettings
from tests.builders import TOGETHER, group, host, snapshot, vm
from tests.placement.rules.placement_keys.nodes import keyed, node_key


def test_look_ups_are_made_again_from_the_new_snapshot() -> None:
    old = snapshot(host("h"), vm("a", "h"), vm("b", "h"), group("g", TOGETHER, "a b"))
    new = snapshot(host("h"), vm("a", "h"), vm("b", "h"), vm("c", "h"), group("g", TOGETHER, "b c"))
    asked = (groups_of, hard_positive_group_of)
    for look_up in asked:
        look_up(old)
    prepare(new, like=old)
    assert new.__dict__.keys() == old.__dict__.keys()
    fresh = snapshot(*new.hosts, *new.vms, *new.affinity_groups)
    ready = [look_up(new) for look_up in asked]
    assert new.__dict__.keys() == old.__dict__.keys(), "nothing was left to be looked up"
    assert ready == [look_up(fresh) for look_up in asked]
    assert members(new)["g"] == ("b", "c")


def test_nothing_is_looked_up_that_nobody_asked_for() -> None:
    old, new = snapshot(host("h")), snapshot(host("h"))
    prepare(new, like=old)
    assert not new.__dict__


def test_what_stands_in_a_part_that_is_the_same_is_shared() -> None:
    keys = (node_key("h", "A"),)
    old, new = keyed(host("h"), keys=keys), keyed(host("h"), vm("a", "h"), keys=keys)
    other = keyed(host("h"), keys=(node_key("h", "A"),))
    assert new.placement_keys is old.placement_keys
    found = keys_by_resource(old)
    for newer in (new, other):
        share(newer, like=old)
    assert keys_by_resource(new) is found
    assert keys_by_resource(other) is not found
    assert keys_by_resource(other) == found


def test_look_ups_are_kept_for_each_argument() -> None:
    old, new = keyed(host("h"), vm("a", "h")), keyed(host("h"))
    wider = KeySettings(memory_ratio=Fraction(2))
    tables = [host_table(old, settings) for settings in (DEFAULTS, wider)]
    assert host_table(old, KeySettings()) is tables[0]
    prepare(new, like=old)
    ready = new.__dict__.copy()
    assert [host_table(new, settings).capacities[0].uncontended_mb for settings in (DEFAULTS, wider)] == [
        65536,
        131072,
    ]
    assert new.__dict__ == ready, "nothing was left to be looked up"
