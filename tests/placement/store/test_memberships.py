"""Memberships are written down as seen, and what is lost stays until it is regained or forgotten."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from ovirt_placement.store.enforcer.observations import (
    LostMembership,
    Membership,
    MembershipChange,
    MembershipKind,
    MembershipStore,
    Seen,
)
from ovirt_placement.store.keys import KeyStore
from tests.placement.databases import database
from tests.placement.store.conftest import Opening

NEAR, OURS = Membership(MembershipKind.GROUP, "g1", "near"), Membership(MembershipKind.LABEL, "l1", "ours")
WEB = Seen("v1", "c1", "blue", (NEAR, OURS))
LOST_GROUP = LostMembership("v1", "web", "c1", "blue", MembershipKind.GROUP, "g1", "near")
LOST_LABEL = LostMembership("v1", "web", "c1", "blue", MembershipKind.LABEL, "l1", "near")


@pytest.fixture
def store(opening: Opening) -> MembershipStore:
    return opening(MembershipStore)


def test_a_vm_has_one_row_which_the_next_takes_the_place_of(store: MembershipStore, url: str) -> None:
    other = replace(WEB, vm="v2", member_of=(NEAR,))
    store.change(MembershipChange(seen=(WEB, other)))
    assert store.seen() == {"v1": WEB, "v2": other}
    moved = replace(WEB, cluster="c2", cluster_name="red", member_of=(OURS,))
    store.change(MembershipChange(seen=(moved,), without=("v2",)))
    assert store.seen() == {"v1": moved}
    with database(url) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM memberships").scalar() == 1


def test_losses_have_the_moment_at_which_they_were_written(store: MembershipStore) -> None:
    before = time.time()
    store.change(MembershipChange(lost=(LOST_GROUP, LOST_LABEL)))
    group, label = store.lost()
    assert (replace(group, since=0.0), replace(label, since=0.0)) == (LOST_GROUP, LOST_LABEL)
    assert before - 1 <= group.since == label.since <= time.time() + 1


def test_one_of_the_same_name_is_regained_and_others_stay(store: MembershipStore) -> None:
    store.change(MembershipChange(lost=(LOST_GROUP, LOST_LABEL, replace(LOST_GROUP, vm="v2"))))
    store.change(MembershipChange(regained=(LOST_LABEL,)))
    assert [(one.vm, one.kind) for one in store.lost()] == [
        ("v1", MembershipKind.GROUP),
        ("v2", MembershipKind.GROUP),
    ]
    store.forget_lost("v1")
    assert [one.vm for one in store.lost()] == ["v2"]


def test_what_is_lost_again_is_to_be_reported_again(store: MembershipStore) -> None:
    store.change(MembershipChange(lost=(LOST_GROUP, replace(LOST_GROUP, vm="v2"))))
    first, _ = store.lost()
    store.mark_reported("v1", first.since)
    assert [one.reported for one in store.lost()] == [True, False]
    store.change(MembershipChange(lost=(replace(LOST_GROUP, cluster="c9"),)))
    again = [one for one in store.lost() if one.vm == "v1"]
    assert [(one.cluster, one.reported) for one in again] == [("c9", False)]
    assert again[0].since > first.since


def test_more_vms_than_a_statement_has_parameters_for(store: MembershipStore) -> None:
    many = tuple(replace(WEB, vm=f"v{number}") for number in range(1201))
    store.change(MembershipChange(seen=many))
    assert len(store.seen()) == 1201
    store.change(MembershipChange(seen=many[:1], without=tuple(one.vm for one in many[1:])))
    assert list(store.seen()) == ["v0"]


def test_vms_that_are_gone_for_good_are_forgotten_with_all_else(store: MembershipStore, url: str) -> None:
    store.change(MembershipChange(seen=(WEB,), lost=(replace(LOST_GROUP, vm="v2"),)))
    keys = KeyStore(url, engine="default", patience_seconds=30)
    assert keys.remembered_vms() == {"v1", "v2"}
    keys.forget_vms(["v1", "v2"])
    keys.close()
    assert (store.seen(), store.lost()) == ({}, ())
