"""Affinity groups and labels: what is checked, what is not, and when a group is violated."""

from typing import Any

import pytest

from ovirt_placement.model import AffinityRule
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import NotFound
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, cluster, group, host, label, vm
from tests.builders import DISABLED as OFF
from tests.simulator.core import engines


def small(*more: Any) -> Engine:
    elsewhere = (cluster("other"), host("far", cluster="other"), vm("foreign", cluster="other"))
    here = (cluster(), host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), vm("c"))
    return engines.engine(*here, *elsewhere, *more)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        ({"vms": ["foreign"]}, "not in the same cluster"),
        ({"hosts": ["far"]}, "not in the same cluster"),
        ({"vm_labels": ["l9"]}, "label is invalid (does not exist)"),
    ],
)
def test_whole_groups_are_checked(edit: dict[str, Any], text: str) -> None:
    """What a real engine refuses too: `tests/simulator/http/test_real_engine.py`."""
    engine = small()
    refusal = engines.refused(engine.affinity_groups.add, CLUSTER, **{"name": "g", **edit})
    assert refusal.http_status == 400
    assert text in refusal.detail
    assert engine.queries.state.groups_of(CLUSTER) == ()
    assert engines.codes(engine) == [10351]


def test_a_savable_conflict_is_a_warning() -> None:
    engine = small(group("bound", hosts_rule=TOGETHER, vms="a", hosts="h1"))
    engine.affinity_groups.add(CLUSTER, name="g", vms=["a"], hosts=["h1"], hosts_rule=SOFT_APART)
    assert engines.codes(engine) == [10357, 10350]


def test_the_cluster_of_a_group_stays() -> None:
    engine = small(group("g", TOGETHER, "a"))
    refusal = engines.refused(engine.affinity_groups.edit, "g", cluster="other")
    assert refusal.http_status == 400
    assert "Cannot change Cluster for Affinity Group" in refusal.detail


def test_single_members_are_added_unchecked() -> None:
    engine = small(group("g", APART, "a"), group("p", TOGETHER, "a b"), label("l"))
    engine.affinity_groups.add_member("g", "vms", "foreign")
    engine.affinity_groups.add_member("g", "vms", "b")
    engine.affinity_groups.add_member("g", "hosts", "far")
    engine.affinity_groups.add_member("g", "vm_labels", "l")
    changed = engine.queries.state.groups.get("g")
    assert (changed.vms, changed.hosts, changed.vm_labels) == (("a", "foreign", "b"), ("far",), ("l",))
    assert engines.codes(engine) == [10352] * 4


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
    (found,) = engine.queries.state.groups_of(CLUSTER)
    assert engine.queries.is_broken(found) is broken


def test_a_migrating_vm_counts_on_its_source_until_the_hand_over() -> None:
    engine = small(group("g", SOFT_APART, "a b"))
    (found,) = engine.queries.state.groups_of(CLUSTER)
    engine.vms.migrate("a")
    assert engine.queries.is_broken(found)
    engine.advance(3.2)
    assert not engine.queries.is_broken(found)


def test_a_label_that_goes_leaves_its_groups() -> None:
    engine = small(group("g", TOGETHER, "a", vm_labels=("l",)), label("l"))
    added = engine.labels.add("fast", vms=["a"])
    with pytest.raises(NotFound):
        engine.labels.add_member(added.id, "hosts", "h9")
    engine.labels.remove("l")
    assert engine.queries.state.groups["g"].vm_labels == ()
    assert engines.codes(engine) == [10380, 10384]


def test_without_the_filter_of_affinity_nobody_is_taken_along() -> None:
    engine = engines.engine(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b"))
    loose = engine.policies.add("loose")
    engine.policies.update_cluster("cluster1", policy_id=loose.id)
    engine.vms.migrate("a", closure=True)
    engine.advance(60)
    assert engines.shown(engine, "a", "b") == ["up h2", "up h1"]
