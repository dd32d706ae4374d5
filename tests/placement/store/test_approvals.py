"""Of each cluster one plan waits at most, and one at most was approved of: the one that waited."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ovirt_placement.store.approvals import ApprovalStore, ApprovedMove

FIRST = (ApprovedMove(("v1",), ("h1",), "h2"), ApprovedMove(("v2", "v3"), ("h1", "h1"), "h3"))
SECOND = (ApprovedMove(("v2", "v3"), ("h1", "h1"), "h3"),)


@pytest.fixture
def store(url: str) -> Iterator[ApprovalStore]:
    opened = ApprovalStore(url, engine="default", patience_seconds=30)
    yield opened
    opened.close()


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
