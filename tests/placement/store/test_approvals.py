"""Of each cluster one plan waits at most, and one is approved of at most: one that waited."""

from __future__ import annotations

import pytest

from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from tests.placement.store.conftest import Opening

FIRST = (ApprovedMove(("v1",), ("h1",), "h2"), ApprovedMove(("v2", "v3"), ("h1", "h1"), "h3"))
SECOND = (ApprovedMove(("v2", "v3"), ("h1", "h1"), "h3"),)


@pytest.fixture
def store(opening: Opening) -> ApprovalStore:
    return opening(ApprovalStore)


def test_a_plan_waits_in_place_of_the_one_before(store: ApprovalStore) -> None:
    assert store.offer("c1", "p1", FIRST, "two moves")
    assert store.offer("c2", "p9", SECOND, "elsewhere")
    assert not store.offer("c1", "p1", FIRST, "two moves")
    assert [(one.plan, one.moves, one.text) for one in store.waiting()] == [
        ("p1", FIRST, "two moves"),
        ("p9", SECOND, "elsewhere"),
    ]
    assert store.offer("c1", "p2", SECOND, "one move")
    assert {one.plan for one in store.waiting()} == {"p2", "p9"}
    store.withdraw("c1")
    store.withdraw("c3")
    assert [one.plan for one in store.waiting()] == ["p9"]


def test_what_is_approved_of_waits_no_more(store: ApprovalStore) -> None:
    store.offer("c1", "p1", FIRST, "two moves")
    approved = store.approve("p1", set_by="eve")
    assert approved is not None
    assert (approved.cluster, approved.moves) == ("c1", FIRST)
    assert store.waiting() == ()
    (approval,) = store.approvals()
    assert (approval.cluster, approval.plan, approval.moves, approval.set_by) == ("c1", "p1", FIRST, "eve")
    assert 0 <= approval.age_seconds < 60
    assert store.approve("p1", set_by="eve") is None


def test_a_plan_whose_place_another_took_cannot_be_approved_of(store: ApprovalStore) -> None:
    store.offer("c1", "p1", FIRST, "two moves")
    store.offer("c1", "p2", SECOND, "one move")
    assert store.approve("p1", set_by="eve") is None
    assert store.approvals() == ()


def test_the_next_approval_takes_the_place_of_the_last(store: ApprovalStore) -> None:
    for plan, moves in (("p1", FIRST), ("p2", SECOND)):
        store.offer("c1", plan, moves, "")
        store.approve(plan, set_by="eve")
    assert [(one.plan, one.moves) for one in store.approvals()] == [("p2", SECOND)]


def test_what_is_refused_waits_no_more_and_is_not_offered_again_for_a_while(store: ApprovalStore) -> None:
    store.offer("c1", "p1", FIRST, "two moves")
    refused = store.refuse("p1", set_by="eve", reason="not tonight")
    assert refused is not None
    assert (refused.cluster, refused.plan) == ("c1", "p1")
    assert store.refuse("p1", set_by="ann", reason="") is None
    assert store.approve("p1", set_by="ann") is None
    assert not store.offer("c1", "p1", FIRST, "two moves")
    assert not store.offer("c1", "p1", FIRST, "two moves", refusal_seconds=3600)
    assert store.waiting() == ()
    # Another plan is another question; and what is asked for again after a while is not.
    assert store.offer("c1", "p2", SECOND, "one move")
    assert not store.offer("c1", "p1", FIRST, "two moves")
    assert store.waiting() == ()
    assert store.offer("c1", "p1", FIRST, "two moves", refusal_seconds=0)


def test_who_applies_a_refused_plan_has_the_last_word(store: ApprovalStore) -> None:
    store.offer("c1", "p1", FIRST, "two moves")
    store.refuse("p1", set_by="eve", reason="")
    store.order("c1", "p1", FIRST, set_by="ann")
    assert store.offer("c1", "p1", FIRST, "two moves")
