"""What others move is left alone, with the host and the groups that are concerned; the rest goes on."""

from __future__ import annotations

import pytest

from ovirt_placement.store.enforcer.intents import IntentState
from tests.builders import APART, CLUSTER, Part, cluster, group, host, pending, snapshot, vm

from .judging import PARTS, STEP, admitted, closed, gates, intent

FAR = (host("f1"), host("f2"))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((vm("x", "h2", status="migrating"),), "x is on its way from or to h2, by the engine or a user"),
        ((vm("x", "h1", status="migrating"),), "x is on its way from or to h1, by the engine or a user"),
        ((vm("x", "f1", migrating_to="h2"),), "x is on its way from or to h2, by the engine or a user"),
        ((vm("x", "f1"), pending("x", "h2")), "x is on its way from or to h2, by the engine or a user"),
        ((vm("x", "f1"), pending("x", "h1")), "x is on its way from or to h1, by the engine or a user"),
        (
            (vm("x", "f1", status="migrating"), group("k", APART, "a x")),
            "x of affinity group k is on its way, by the engine or a user",
        ),
        (
            (vm("x"), pending("x", "f1"), group("k", APART, "a x")),
            "x of affinity group k is on its way, by the engine or a user",
        ),
    ],
)
def test_what_touches_others_migrations_waits(more: tuple[Part, ...], reason: str) -> None:
    assert closed(gates(), *PARTS, *FAR, *more) == ("movement", reason)


@pytest.mark.parametrize(
    "more",
    [
        (vm("x", "f1", status="migrating"),),
        (vm("x", "f1", migrating_to="f2"),),
        (vm("x"), pending("x", "h2")),
        (vm("x", "f1", status="migrating"), group("k", vms="a x")),
    ],
    ids=["elsewhere", "elsewhere, target known", "a start", "a group without a rule for VMs"],
)
def test_what_others_do_elsewhere_holds_nothing(more: tuple[Part, ...]) -> None:
    assert admitted(gates(), *PARTS, *FAR, *more)


def test_a_vm_that_somebody_moves_is_left_alone() -> None:
    parts = (*PARTS[:2], vm("a", "h1", status="migrating"), *PARTS[3:])
    assert closed(gates(), *parts) == ("movement", "a is on its way already, by the engine or a user")


def test_our_own_migrations_do_not_hold_their_hosts_and_groups() -> None:
    ours = intent(IntentState.ACCEPTED, 5, "c", None)
    parts = (*PARTS, *FAR, vm("c", "h1", status="migrating"), group("k", APART, "a c"))
    # The group would refuse the target if both went there.
    elsewhere = intent(IntentState.ACCEPTED, 5, "c", None, target="f1")
    assert closed(gates(under_way=[ours]), *parts)[0] == "legality"
    assert admitted(gates(under_way=[elsewhere]), *parts)


def test_what_moves_in_another_cluster_is_no_obstacle() -> None:
    parts = (*PARTS, cluster(), cluster("other"), host("far", cluster="other"))
    state = snapshot(*parts, vm("busy", "far", cluster="other", status="migrating"))
    assert gates().admit(state, CLUSTER, STEP)
