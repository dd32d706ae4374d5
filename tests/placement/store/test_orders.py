"""Orders: of each cluster one plan waits at most; a pause is in force until it ends or is taken back."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from ovirt_placement.store.enforcer.intents import IntendedMigration, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.orders import ALL_CLUSTERS, ApprovalStore, ApprovedMove, Paused, PauseStore
from ovirt_placement.store.sql.database import StoreAway
from tests.placement.store.conftest import Opening
from tests.stored import listening

FIRST = (ApprovedMove(("v1",), ("h1",), "h2"), ApprovedMove(("v2", "v3"), ("h1", "h1"), "h3"))
SECOND = (ApprovedMove(("v2", "v3"), ("h1", "h1"), "h3"),)


@pytest.fixture
def approvals(opening: Opening) -> ApprovalStore:
    return opening(ApprovalStore)


def test_a_plan_waits_in_place_of_the_one_before(approvals: ApprovalStore) -> None:
    assert approvals.offer("c1", "p1", FIRST, "two moves")
    assert approvals.offer("c2", "p9", SECOND, "elsewhere")
    assert not approvals.offer("c1", "p1", FIRST, "two moves")
    assert [(one.plan, one.moves, one.text) for one in approvals.waiting()] == [
        ("p1", FIRST, "two moves"),
        ("p9", SECOND, "elsewhere"),
    ]
    assert approvals.offer("c1", "p2", SECOND, "one move")
    assert {one.plan for one in approvals.waiting()} == {"p2", "p9"}
    approvals.withdraw("c1")
    approvals.withdraw("c3")
    assert [one.plan for one in approvals.waiting()] == ["p9"]


def test_what_is_approved_of_waits_no_more_and_the_next_takes_its_place(approvals: ApprovalStore) -> None:
    approvals.offer("c1", "p1", FIRST, "two moves")
    approved = approvals.approve("p1", set_by="eve")
    assert approved is not None
    assert (approved.cluster, approved.moves, approvals.waiting()) == ("c1", FIRST, ())
    (one,) = approvals.approvals()
    assert (one.cluster, one.plan, one.moves, one.set_by) == ("c1", "p1", FIRST, "eve")
    assert 0 <= one.age_seconds < 60
    assert approvals.approve("p1", set_by="eve") is None
    for plan in ("p2", "p3"):
        approvals.offer("c1", plan, SECOND, "one move")
    assert approvals.approve("p2", set_by="eve") is None, "another took its place"
    assert [one.plan for one in approvals.approvals()] == ["p1"]
    assert approvals.approve("p3", set_by="eve") is not None
    assert [(one.plan, one.moves) for one in approvals.approvals()] == [("p3", SECOND)]


def test_what_is_refused_waits_no_more_and_is_not_offered_again_for_a_while(approvals: ApprovalStore) -> None:
    approvals.offer("c1", "p1", FIRST, "two moves")
    refused = approvals.refuse("p1", set_by="eve", reason="not tonight")
    assert refused is not None
    assert (refused.cluster, refused.plan) == ("c1", "p1")
    assert approvals.refuse("p1", set_by="ann", reason="") is None
    assert approvals.approve("p1", set_by="ann") is None
    assert not approvals.offer("c1", "p1", FIRST, "two moves")
    assert not approvals.offer("c1", "p1", FIRST, "two moves", refusal_seconds=3600)
    assert approvals.waiting() == ()
    assert approvals.refused(3600)["p1"].endswith("refused plan p1 in cluster c1: not tonight")
    assert approvals.refused(0) == {}
    # Another plan is another question; and what is asked for again after a while is not.
    assert approvals.offer("c1", "p2", SECOND, "one move")
    assert not approvals.offer("c1", "p1", FIRST, "two moves")
    assert approvals.waiting() == ()
    assert approvals.offer("c1", "p1", FIRST, "two moves", refusal_seconds=0)


def test_who_applies_a_refused_plan_has_the_last_word(approvals: ApprovalStore) -> None:
    approvals.offer("c1", "p1", FIRST, "two moves")
    approvals.refuse("p1", set_by="eve", reason="")
    approvals.order("c1", "p1", FIRST, set_by="ann")
    assert approvals.refused(3600) == {}
    assert approvals.offer("c1", "p1", FIRST, "two moves")


@pytest.fixture
def pauses(opening: Opening) -> PauseStore:
    return opening(PauseStore)


def pause(pauses: PauseStore, where: str, reason: str = "", seconds: float | None = None) -> None:
    pauses.pause(where, cluster_name=where.upper(), reason=reason, set_by="eve", seconds=seconds)


def test_pauses_say_who_when_why_and_until_and_the_last_word_on_a_cluster_counts(pauses: PauseStore) -> None:
    before = time.time()
    pause(pauses, "c2", "first")
    pause(pauses, "c2", "storage", 3600.0)
    pause(pauses, "c1")
    pause(pauses, ALL_CLUSTERS)
    everywhere, first, second = pauses.pauses()
    assert (everywhere.cluster, everywhere.cluster_name) == ("", "")
    assert (first.cluster_name, first.reason, first.until) == ("C1", "", None)
    assert (second.cluster, second.reason, second.set_by) == ("c2", "storage", "eve")
    assert before - 1 <= second.set_at <= time.time() + 1
    assert second.until == pytest.approx(second.set_at + 3600, abs=1)


def test_a_pause_ends_by_itself(pauses: PauseStore) -> None:
    pause(pauses, "c1", seconds=-1)
    assert pauses.pauses() == ()
    assert pauses.resume("c1", set_by="adam") is None


def test_of_two_who_do_not_know_of_each_other_the_second_is_refused(pauses: PauseStore) -> None:
    """The page says who paused: what a person sees there may be of old."""
    pause(pauses, "c1", "first")
    mine: dict[str, Any] = {"cluster_name": "C1", "reason": "", "set_by": "bob", "seconds": 60.0}
    with pytest.raises(Paused, match=r"eve paused cluster C1 at .* \(first\)"):
        pauses.pause("c1", over=False, **mine)
    (seen,) = pauses.pauses()
    with pytest.raises(Paused, match="eve paused"):
        pauses.resume("c1", set_by="bob", set_at=str(seen.set_at - 1))
    assert pauses.resume("c1", set_by="bob", set_at=str(seen.set_at)) is not None
    with pytest.raises(Paused, match="are not paused there any more"):
        pauses.resume("c1", set_by="adam", set_at=str(seen.set_at))


def test_what_is_taken_back_is_reported_and_when(pauses: PauseStore) -> None:
    pause(pauses, "c1", "storage")
    pause(pauses, ALL_CLUSTERS)
    lifted = pauses.resume("c1", set_by="adam")
    assert lifted is not None
    assert (lifted.cluster, lifted.reason, lifted.set_by) == ("c1", "storage", "eve")
    assert [one.cluster for one in pauses.pauses()] == [ALL_CLUSTERS]
    resumed = [pauses.resume(where, set_by="adam") is not None for where in ("c1", ALL_CLUSTERS)]
    assert (resumed, pauses.pauses()) == ([False, True], ())
    ages = pauses.resumed()
    assert ages.keys() == {"c1", ALL_CLUSTERS}
    assert all(0 <= age < 60 for age in ages.values())


def test_of_two_who_take_a_pause_back_at_once_one_has(pauses: PauseStore, opening: Opening) -> None:
    opening(LeaseStore).take_lease("one", 60)
    pause(pauses, "c1")
    other, found = opening(PauseStore, patience_seconds=0.05), []

    def interfere(connection: object, cursor: object, statement: str, *_: object) -> None:
        if "FROM pauses" in statement and not found:
            found.append(None)
            with suppress(StoreAway):
                found.append(other.resume("c1", set_by="bob"))

    with listening(before_cursor_execute=interfere):
        found.append(pauses.resume("c1", set_by="adam"))
    assert len([one for one in found if one is not None]) == 1
    assert pauses.pauses() == ()


MOVE = IntendedMigration(vm="v1", cluster="c1", source="h1", target="h2", correlation_id="one")


@pytest.mark.parametrize("where", ["c1", "C1", ALL_CLUSTERS])
def test_no_intent_is_written_of_what_is_paused(pauses: PauseStore, opening: Opening, where: str) -> None:
    intents = opening(Store)
    pause(pauses, "c2")  # which is another cluster
    intents.check_pauses(("c1", "C1"))
    pause(pauses, where)
    with pytest.raises(Paused, match="eve paused"):
        intents.check_pauses(("c1", "C1"))
    with pytest.raises(Paused, match="eve paused"):
        intents.prepare([MOVE], paused_by=("c1", "C1"))
    assert intents.open_intents() == ()
    pauses.resume(where, set_by="eve")
    assert intents.prepare([MOVE], paused_by=("c1", "C1"))


def test_who_pauses_waits_for_the_intent_that_is_being_written(opening: Opening) -> None:
    """So the user who paused sees every migration that leaves nevertheless."""
    epoch = opening(LeaseStore).take_lease("one", 600.0)
    pauses, intents, reader = opening(PauseStore), opening(Store), opening(Store)
    seen: list[str] = []

    def pause_and_look() -> None:
        pause(pauses, "c1")
        seen.extend(intent.vm for intent in reader.open_intents())

    pausing = threading.Thread(target=pause_and_look)

    def planned() -> Iterator[IntendedMigration]:
        pausing.start()
        pausing.join(0.5)  # as long as it would take if it did not wait
        yield MOVE

    intents.prepare(planned(), epoch=epoch, paused_by=("c1",))
    pausing.join()
    assert seen == ["v1"]
