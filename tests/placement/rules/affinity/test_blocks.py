"""What hard groups, legacy labels and pinning ask of VMs that go to one host together."""

from __future__ import annotations

from ovirt_placement.rules.affinity.blocks import bindings_of, block_of, gather
from ovirt_placement.rules.affinity.groups import hard_positive_group_of
from ovirt_placement.rules.assignment import NOTHING, Block
from tests.builders import (
    APART,
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

HOSTS = (host("h1"), host("h2"), host("h3"))


def of(together: str, *parts: Part) -> Block:
    named = {part.id for part in parts}
    state = snapshot(*HOSTS, *(vm(name) for name in "abc" if name not in named), *parts)
    return block_of(state, tuple(together.split()), bindings_of(state), NOTHING)


def test_without_rules_any_host_will_do() -> None:
    assert of("a b") == Block(("a", "b"))


def test_soft_groups_ask_nothing() -> None:
    soft = group("g", SOFT_APART, "a b", hosts_rule=SOFT_TOGETHER, hosts="h1")
    assert of("a", soft) == Block(("a",))


def test_all_that_binds_a_vm_of_the_block_binds_the_block() -> None:
    found = of(
        "a b",
        group("wide", vms="a", hosts_rule=TOGETHER, hosts="h1 h2"),
        group("wide too", vms="b", hosts_rule=TOGETHER, hosts="h2 h3"),
        group("off", vms="b", hosts_rule=APART, hosts="h3"),
        group("n", APART, "a c"),
    )
    assert (found.allowed, found.forbidden, found.apart) == ({"h2"}, {"h3"}, {"n"})


def test_vms_that_must_share_a_host_and_must_not_are_allowed_nowhere() -> None:
    assert of("a b", group("n", APART, "a b")).allowed == frozenset()
    assert of("a b", group("n", APART, "a c"), group("m", APART, "b c")).allowed is None


def test_only_a_vm_that_cannot_be_migrated_is_bound_to_the_hosts_it_is_pinned_to() -> None:
    assert of("a b", vm("a", "h1", migratable=False, pinned_hosts=("h1", "h2"))).allowed == {"h1", "h2"}
    assert of("a b", vm("a", "h1", pinned_hosts=("h1", "h2"))).allowed is None
    assert of("a b", vm("a", "h1", migratable=False)).allowed is None


def test_host_rule_without_hosts_is_not_configured_and_a_legacy_label_without_hosts_shuts_out() -> None:
    assert of("a", group("g", vms="a", hosts_rule=TOGETHER)).allowed is None
    assert of("a", cluster(compatibility="4.3"), label("l", "a", implicit=True)).allowed == frozenset()


def test_vms_are_gathered_as_positive_groups_tie_them_through_vms_that_nobody_asked_about() -> None:
    state = snapshot(*HOSTS, *map(vm, "abcd"), group("p", TOGETHER, "a b"), group("q", TOGETHER, "b c"))
    assert list(gather("cda", hard_positive_group_of(state))) == [("c", "a"), ("d",)]
