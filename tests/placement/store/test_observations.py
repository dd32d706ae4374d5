"""Samples and memberships: the worst of an hour, and what VMs are members of until that is regained."""

import time
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Cause, IntentKind, Store
from ovirt_placement.store.enforcer.observations import (
    KEPT_SECONDS,
    LostMembership,
    Membership,
    MembershipChange,
    MembershipKind,
    MembershipStore,
    Sample,
    SampleStore,
    Seen,
)
from ovirt_placement.store.keys import KeyStore
from tests.placement.databases import database
from tests.placement.store.conftest import Opening
from tests.stored import prepared

HOUR = 3600.0
YEAR = 366 * 24 * HOUR


@pytest.fixture
def samples(opening: Opening) -> SampleStore:
    return opening(SampleStore)


def back(url: str, hours: int) -> None:
    """All that was written becomes so much older."""
    with database(url) as connection:
        connection.exec_driver_sql(f"UPDATE samples SET hour = hour - {hours}")
        for table in ("intents", "plans"):
            connection.exec_driver_sql(
                f"UPDATE {table} SET created = created - {hours * HOUR}, updated = updated - {hours * HOUR}"
            )


def end(store: Store, name: str, cause: Any = "done", kind: IntentKind = IntentKind.MIGRATE_VM) -> None:
    intent = prepared(store, vm=name, correlation_id=name, kind=kind)
    if cause == "done":
        store.accept(intent.id)
        store.finish(intent.id)
    else:
        store.fail(intent.id, "no", cause)


def test_of_an_hour_the_worst_stands_whatever_the_order(url: str, samples: SampleStore) -> None:
    for order in permutations([(0, 2, 1, 0), (3, 0, 0, 5), (1, 1, 1, 2)]):
        for hard, soft, survived, lost in order:
            samples.record("c", "blue", hard=hard, soft=soft)
            samples.record("c", "blue", ha_failures=1, ha_survived=survived, ha_not_restarted=lost)
        found = samples.samples(since_seconds=2 * HOUR).samples
        assert {(one.cluster, one.cluster_name) for one in found} == {("c", "blue")}
        names = ("hard", "soft", "ha_failures", "ha_not_restarted")
        worst = [max(getattr(one, name) or 0 for one in found) for name in names]
        assert (worst, min(one.ha_survived or 0 for one in found)) == ([3, 2, 1, 5], 0)
        with database(url) as connection:
            connection.exec_driver_sql("DELETE FROM samples")


def test_what_nobody_looked_at_is_not_known(samples: SampleStore) -> None:
    samples.record("c", "blue", ha_failures=2, ha_survived=2, ha_not_restarted=0)
    (one,) = samples.samples(since_seconds=HOUR).samples
    assert (one.hard, one.soft, one.ha_survived, one.ha_not_restarted) == (None, None, 2, 0)


def counted(found: tuple[Sample, ...]) -> list[tuple[int, int, int]]:
    """Plans, migrations that were done, and that failed, of all hours together."""
    return [tuple(sum(getattr(one, name) for one in found) for name in ("plans", "done", "failed"))]  # type: ignore[misc]


def test_counts_are_the_same_before_and_after_what_they_count_is_forgotten(
    url: str, store: Store, samples: SampleStore, history: HistoryStore
) -> None:
    for name, cause in zip(
        "abcde", ("done", "done", Cause.TARGET_REFUSED, None, Cause.NEVER_ASKED), strict=True
    ):
        end(store, name, cause)
    for number, kind in enumerate(set(IntentKind) - {IntentKind.MIGRATE_VM}):
        end(store, f"action {number}", ("done", Cause.TARGET_REFUSED)[number % 2], kind)
    prepared(store, vm="open", correlation_id="open")
    for plan in ("p1", "p2", "p2"):
        history.record_plan(plan, "c", {"steps": []})
    samples.record("c", "blue", hard=1, soft=0)
    back(url, 40 * 24)
    end(store, "late")
    before = samples.samples(since_seconds=YEAR).samples
    assert counted(before) == [(2, 3, 2)]
    for _ in range(2):
        store.forget(older_than_seconds=30 * 24 * HOUR)
        assert samples.samples(since_seconds=YEAR).samples == before
    assert counted(samples.samples(since_seconds=HOUR).samples) == [(0, 1, 0)]


def test_samples_themselves_end(url: str, store: Store, samples: SampleStore) -> None:
    samples.record("c", "blue", hard=1, soft=0)
    back(url, int(KEPT_SECONDS / HOUR) - 2)
    store.forget(older_than_seconds=HOUR)
    assert len(samples.samples(since_seconds=KEPT_SECONDS).samples) == 1
    back(url, 4)
    store.forget(older_than_seconds=HOUR)
    assert samples.samples(since_seconds=2 * KEPT_SECONDS).samples == ()


NEAR, OURS = Membership(MembershipKind.GROUP, "g1", "near"), Membership(MembershipKind.LABEL, "l1", "ours")
WEB = Seen("v1", "c1", "blue", (NEAR, OURS))
LOST_GROUP = LostMembership("v1", "web", "c1", "blue", MembershipKind.GROUP, "g1", "near")
LOST_LABEL = LostMembership("v1", "web", "c1", "blue", MembershipKind.LABEL, "l1", "near")


@pytest.fixture
def memberships(opening: Opening) -> MembershipStore:
    return opening(MembershipStore)


def test_a_vm_has_one_row_which_the_next_takes_the_place_of(memberships: MembershipStore, url: str) -> None:
    other = replace(WEB, vm="v2", member_of=(NEAR,))
    memberships.change(MembershipChange(seen=(WEB, other)))
    assert memberships.seen() == {"v1": WEB, "v2": other}
    moved = replace(WEB, cluster="c2", cluster_name="red", member_of=(OURS,))
    memberships.change(MembershipChange(seen=(moved,), without=("v2",)))
    assert memberships.seen() == {"v1": moved}
    with database(url) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM memberships").scalar() == 1


def test_losses_have_the_moment_at_which_they_were_written_and_one_of_the_same_name_is_regained(
    memberships: MembershipStore,
) -> None:
    before, other = time.time(), replace(LOST_GROUP, vm="v2")
    memberships.change(MembershipChange(lost=(LOST_GROUP, LOST_LABEL, other)))
    found = memberships.lost()
    assert [replace(one, since=0.0) for one in found] == [LOST_GROUP, LOST_LABEL, other]
    assert before - 1 <= found[0].since == found[1].since <= time.time() + 1
    memberships.change(MembershipChange(regained=(LOST_LABEL,)))
    assert [replace(one, since=0.0) for one in memberships.lost()] == [LOST_GROUP, other]
    memberships.forget_lost("v1")
    assert [one.vm for one in memberships.lost()] == ["v2"]


def test_what_is_lost_again_is_to_be_reported_again(memberships: MembershipStore) -> None:
    memberships.change(MembershipChange(lost=(LOST_GROUP, replace(LOST_GROUP, vm="v2"))))
    first, _ = memberships.lost()
    memberships.mark_reported("v1", first.since)
    assert [one.reported for one in memberships.lost()] == [True, False]
    memberships.change(MembershipChange(lost=(replace(LOST_GROUP, cluster="c9"),)))
    again = [one for one in memberships.lost() if one.vm == "v1"]
    assert [(one.cluster, one.reported) for one in again] == [("c9", False)]
    assert again[0].since > first.since


def test_more_vms_than_a_statement_has_parameters_for(memberships: MembershipStore) -> None:
    many = tuple(replace(WEB, vm=f"v{number}") for number in range(1201))
    memberships.change(MembershipChange(seen=many))
    assert len(memberships.seen()) == 1201
    memberships.change(MembershipChange(seen=many[:1], without=tuple(one.vm for one in many[1:])))
    assert list(memberships.seen()) == ["v0"]


def test_vms_that_are_gone_for_good_are_forgotten_with_all_else(
    memberships: MembershipStore, opening: Opening
) -> None:
    memberships.change(MembershipChange(seen=(WEB,), lost=(replace(LOST_GROUP, vm="v2"),)))
    keys = opening(KeyStore)
    assert keys.remembered_vms() == {"v1", "v2"}
    keys.forget_vms(["v1", "v2"])
    assert (memberships.seen(), memberships.lost()) == ({}, ())
