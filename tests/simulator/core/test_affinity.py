"""Affinity groups and labels: what is checked, what is not, and when a group is violated."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_placement.model import AffinityRule
from ovirt_simulator.core.affinity_commands import AffinityGroupEdit, Members
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.rejections import NotFound
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
    label,
    vm,
)
from tests.simulator.core import engines


def small(*more: Any) -> Engine:
    return engines.engine(
        cluster(),
        cluster("other"),
        host("h1"),
        host("h2"),
        host("far", cluster="other"),
        vm("a", "h1"),
        vm("b", "h1"),
        vm("c"),
        vm("foreign", cluster="other"),
        *more,
    )


def test_a_new_group_has_the_engines_defaults() -> None:
    engine = small()
    added = engine.affinity_groups.add(CLUSTER, AffinityGroupEdit(name="g", priority=2.123456789))
    assert added.priority == 2.1234568
    assert (added.vms_rule, added.hosts_rule) == (DISABLED, DISABLED)
    assert engine.queries.affinity_groups(CLUSTER) == (added,)
    assert engines.codes(engine) == [10350]


def test_an_edit_keeps_what_it_does_not_say_and_replaces_whole_lists() -> None:
    engine = small(group("g", TOGETHER, "a b", hosts="h1"))
    edited = engine.affinity_groups.edit("g", AffinityGroupEdit(vms=[], description="new"))
    assert (edited.vms, edited.hosts, edited.vms_rule, edited.description) == ((), ("h1",), TOGETHER, "new")
    assert engines.codes(engine) == [10352]
    engine.affinity_groups.remove("g")
    assert engine.queries.state.groups.get("g") is None


@pytest.mark.parametrize(
    ("edit", "status", "text"),
    [
        ({"name": "taken"}, 400, "name already exists"),
        ({"vms": ["nobody"]}, 400, "Provided VM is invalid (does not exist)."),
        ({"vms": ["foreign"]}, 400, "not in the same cluster"),
        ({"hosts": ["far"]}, 400, "not in the same cluster"),
        ({"vms": ["a", "a"]}, 400, "Duplicate VM."),
        ({"vm_labels": ["l9"]}, 400, "label is invalid (does not exist)"),
        ({"vms": ["a", "b"], "vms_rule": SOFT_APART}, 409, "collision"),
        ({"vms": ["a"], "hosts": ["h1"], "hosts_rule": APART}, 409, "enforcing affinity groups"),
    ],
)
def test_whole_groups_are_checked(edit: dict[str, Any], status: int, text: str) -> None:
    engine = small(
        group("taken", SOFT_TOGETHER, "a b", cluster="cluster1"),
        group("bound", hosts_rule=TOGETHER, vms="a", hosts="h1"),
    )
    refusal = engines.refused(engine.affinity_groups.add, CLUSTER, AffinityGroupEdit(**{"name": "g", **edit}))
    assert refusal.http_status == status
    assert text in refusal.detail
    assert [g.id for g in engine.queries.affinity_groups(CLUSTER)] == ["bound", "taken"]
    assert engines.codes(engine) == [10351]


def test_a_savable_conflict_is_a_warning() -> None:
    engine = small(group("bound", hosts_rule=TOGETHER, vms="a", hosts="h1"))
    engine.affinity_groups.add(
        CLUSTER, AffinityGroupEdit(name="g", vms=["a"], hosts=["h1"], hosts_rule=SOFT_APART)
    )
    assert engines.codes(engine) == [10357, 10350]


def test_the_cluster_of_a_group_stays() -> None:
    engine = small(group("g", TOGETHER, "a"))
    refusal = engines.refused(engine.affinity_groups.edit, "g", AffinityGroupEdit(cluster="other"))
    assert refusal.http_status == 400
    assert "Cannot change Cluster for Affinity Group" in refusal.detail


def test_single_members_are_added_unchecked() -> None:
    engine = small(group("g", APART, "a"), group("p", TOGETHER, "a b"), label("l"))
    engine.affinity_groups.add_member("g", Members.VMS, "foreign")
    engine.affinity_groups.add_member("g", Members.VMS, "b")
    engine.affinity_groups.add_member("g", Members.HOSTS, "far")
    engine.affinity_groups.add_member("g", Members.VM_LABELS, "l")
    changed = engine.queries.state.groups.get("g")
    assert changed is not None
    assert (changed.vms, changed.hosts, changed.vm_labels) == (("a", "foreign", "b"), ("far",), ("l",))
    assert engines.codes(engine) == [10352] * 4
    engine.affinity_groups.remove_member("g", Members.VMS, "a")
    for command, member, text in (
        (engine.affinity_groups.add_member, "b", "Duplicate VM."),
        (engine.affinity_groups.add_member, "nobody", "The selected VM does not exist."),
        (engine.affinity_groups.remove_member, "c", "Provided VM is invalid (does not exist)."),
    ):
        refusal = engines.refused(command, "g", Members.VMS, member)
        assert refusal.http_status == 400
        assert text in refusal.detail
    assert engines.refused(engine.affinity_groups.add_member, "g9", Members.VMS, "a").http_status == 400


OFF = DISABLED


@pytest.mark.parametrize(
    ("vms_rule", "hosts_rule", "hosts", "broken"),
    [
        (SOFT_APART, OFF, "", True),
        (TOGETHER, OFF, "", False),
        (OFF, TOGETHER, "h1", False),
        (OFF, TOGETHER, "h2", True),
        (OFF, TOGETHER, "", True),
        (OFF, APART, "h1", True),
        (OFF, APART, "h2", False),
        (OFF, OFF, "h2", False),
    ],
)
def test_broken_counts_running_members(
    vms_rule: AffinityRule, hosts_rule: AffinityRule, hosts: str, broken: bool
) -> None:
    engine = small(
        group("g", vms_rule, "a c", hosts_rule=hosts_rule, hosts=hosts, vm_labels=("l",)), label("l", "b")
    )
    (found,) = engine.queries.affinity_groups(CLUSTER)
    assert engine.queries.is_broken(found) is broken


def test_a_migrating_vm_counts_on_its_source_until_the_hand_over() -> None:
    engine = small(group("g", SOFT_APART, "a b"))
    (found,) = engine.queries.affinity_groups(CLUSTER)
    engine.vms.migrate("a")
    assert engine.queries.is_broken(found)
    engine.advance(3.2)
    assert not engine.queries.is_broken(found)


def test_labels() -> None:
    engine = small(group("g", TOGETHER, "a", vm_labels=("l",)), label("l"))
    added = engine.labels.add("fast", vms=["a"])
    assert engines.refused(engine.labels.add, "fast").http_status == 409
    engine.labels.add_member(added.id, "vms", "b")
    engine.labels.add_member(added.id, "hosts", "h1")
    engine.labels.remove_member(added.id, "vms", "a")
    found = engine.queries.state.labels.get(added.id)
    assert found is not None
    assert (found.vms, found.hosts) == (("b",), ("h1",))
    assert engines.refused(engine.labels.remove, added.id).http_status == 409
    with pytest.raises(NotFound):
        engine.labels.remove_member(added.id, "vms", "a")
    with pytest.raises(NotFound):
        engine.labels.add_member(added.id, "hosts", "h9")
    renamed = engine.labels.edit(added.id, name="slow", vms=[], hosts=[])
    assert (renamed.name, renamed.vms) == ("slow", ())
    engine.labels.remove(added.id)
    engine.labels.remove("l")
    left = engine.queries.state.groups.get("g")
    assert left is not None
    assert left.vm_labels == ()
    assert engines.codes(engine) == [10380, 10382, 10382, 10382, 10382, 10384, 10384]
