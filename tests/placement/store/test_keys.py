"""Placement keys and rules in the store: written once, with who wrote it, and readers learn of it."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import FrozenKeys, PlacementKey, PlacementRule, RuleDomain, StickyCopy
from ovirt_placement.store.keys import KeyChange, KeyStore, Run
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement.store.sql.database import StoreAway
from ovirt_service.errors import UserError
from tests import builders
from tests.builders import rule
from tests.examples import examples
from tests.placement.databases import database
from tests.placement.store.conftest import Opening, at_once
from tests.stored import put_keys


@pytest.fixture
def store(opening: Opening) -> KeyStore:
    return opening(KeyStore)


key = partial(builders.key, level="cluster", resource="c1")


def copy(name: str, value: float = 1.0, vm: str = "v1") -> StickyCopy:
    return StickyCopy(vm=vm, name=name, value=value, weight=60.0)


def test_a_key_is_known_with_who_set_it_and_when_and_replaces_the_one_in_its_place_only(
    store: KeyStore,
) -> None:
    on_server, of_be = key("GEN", level="server", resource="v1"), key("GEN", key_class="be")
    put_keys(store, [key("GEN"), of_be, key("SAN"), on_server])
    put_keys(store, [key("GEN", 2.0), key("SAN")], set_by="bob")
    assert [(one.key, one.set_by) for one in store.all_keys()] == [
        (of_be, "ann"),
        (key("GEN", 2.0), "bob"),
        (key("SAN"), "ann"),  # nothing was changed about it
        (on_server, "ann"),
    ]
    assert all(one.set_at > 1_600_000_000 for one in store.all_keys())


def test_what_is_decided_on_the_keys_that_stand_is_done(store: KeyStore) -> None:
    put_keys(store, [key("GEN"), key("SAN")])

    def decide(placement: tuple[PlacementKey, ...]) -> KeyChange:
        assert placement == (key("GEN"), key("SAN"))
        return KeyChange(put=(key("SAN", 2.0),), remove=(key("GEN"), key("OTHER")))

    assert store.change(decide, set_by="bob").put == (key("SAN", 2.0),)
    assert [one.key for one in store.all_keys()] == [key("SAN", 2.0)]


def test_a_change_is_whole_or_nothing(store: KeyStore) -> None:
    put_keys(store, [key("GEN")])
    revision = store.revision()
    violated = key("SAN\ud800")  # no database takes half a character
    change = KeyChange(put=(key("NEW"), violated), remove=(key("GEN"),))
    with pytest.raises((UserError, UnicodeError)):
        store.change(lambda _: change, set_by="ann")

    def refuse(placement: tuple[PlacementKey, ...]) -> KeyChange:
        raise UserError("not so")

    with pytest.raises(UserError, match="not so"):
        store.change(refuse, set_by="ann")
    assert [one.key.name for one in store.all_keys()] == ["GEN"]
    assert store.revision() == revision


@settings(
    deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    value=st.floats()
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=255),
    weight=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
@example(value=2.8824671182353285e-303, weight=1.0)  # SQLite itself would round it
def test_values_come_back_as_they_were_written(
    store: KeyStore, value: float | str, weight: float | None
) -> None:
    put_keys(store, [key("GEN", value, weight)])
    (found,) = (one.key for one in store.all_keys())
    assert found.weight == weight
    assert str(found.value) == str(value)
    if str(value) not in ("nan", "inf", "-inf"):
        assert type(found.value) is type(value)


def test_a_run_is_remembered_until_it_ends_and_its_copies_longer(store: KeyStore) -> None:
    first = Run("v1", 10.5, (("Group1", 1.0), ("Repel1", 0.5)), (copy("SAN"), copy("RACK", 2.0)))
    store.begin_runs([first, Run("v2", None, ())])
    assert store.runs() == {"v1": 10.5, "v2": None}
    store.end_runs(["v1", "never"])
    records = store.records()
    assert records.frozen_keys == (FrozenKeys("v2", ()),)
    assert records.sticky_copies == (copy("RACK", 2.0), copy("SAN"))


def test_a_run_takes_the_place_of_an_earlier_one(store: KeyStore) -> None:
    store.begin_runs([Run("v1", 1.0, (("Group1", 1.0),), (copy("SAN"),))])
    store.begin_runs([Run("v1", 2.0, (("Group2", 1.0),))])
    assert store.records().frozen_keys == (FrozenKeys("v1", (("Group2", 1.0),)),)
    assert store.records().sticky_copies == (copy("SAN"),)  # not spoken of
    store.begin_runs([Run("v1", 3.0, (), (copy("SAN", 2.0),))])
    assert store.records().sticky_copies == (copy("SAN", 2.0),)


def test_every_writing_has_a_revision_of_its_own(store: KeyStore) -> None:
    writings: tuple[Callable[[], object], ...] = (
        lambda: put_keys(store, [key("GEN")]),
        lambda: store.begin_runs([Run("v1", None, ())]),
        lambda: store.end_runs(["v1"]),
    )
    seen = {store.revision()}
    for write in writings:
        write()
        seen.add(store.revision())
    assert len(seen) == 4
    before = store.records().revision
    store.begin_runs([])
    store.end_runs([])
    assert store.revision() == before


def test_nobody_decides_on_keys_that_another_changes_meanwhile(opening: Opening) -> None:
    """Each counts one key up from what it sees: who saw an old number would hide somebody's turn.

    The revision of keys is made by the first, and counted up by the others.
    """
    turns, stores = 4, [opening(KeyStore, engine="theirs") for _ in range(4)]
    put_keys(opening(KeyStore), ())  # makes the tables

    def count(placement: tuple[PlacementKey, ...]) -> KeyChange:
        (before,) = (float(one.value) for one in placement) if placement else (0.0,)
        return KeyChange(put=(key("TURNS", before + 1),))

    def take_turns(number: int) -> None:
        for _ in range(turns):
            stores[number].change(count, set_by=f"author{number}")

    assert at_once(len(stores), take_turns) == [None] * len(stores)
    assert [one.key.value for one in stores[0].all_keys()] == [turns * len(stores)]


def test_a_vm_is_missing_since_it_was_first_missed(url: str, store: KeyStore) -> None:
    assert store.mark_missing(["v1"]) == {"v1": 0.0}
    with database(url) as connection:
        connection.exec_driver_sql("UPDATE missing_vms SET since = since - 1000")
    ages = store.mark_missing(["v1", "v2"])
    assert (1000 <= ages["v1"] < 1060, ages["v2"]) == (True, 0.0)
    assert store.mark_missing(["v2"]).keys() == {"v2"}  # v1 was there again
    assert store.mark_missing(["v1"]) == {"v1": 0.0}


def test_who_misses_the_same_as_before_waits_for_no_writer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with closing(KeyStore(url, engine="default", patience_seconds=0.05)) as impatient:
        impatient.mark_missing(["v1"])
        with database(url) as lock:
            lock.exec_driver_sql("UPDATE missing_vms SET since = since")
            assert impatient.mark_missing(["v1"]).keys() == {"v1"}
            with pytest.raises(StoreAway):
                impatient.mark_missing([])


def test_a_vm_that_is_forgotten_leaves_nothing_but_what_people_set(store: KeyStore) -> None:
    set_on_it = key("GEN", level="server", resource="v1")
    put_keys(store, [set_on_it])
    store.begin_runs([Run(vm, None, (), (copy("SAN", vm=vm),)) for vm in ("v1", "v2")])
    store.end_runs(["v2"])
    store.mark_missing(["v1", "v2"])
    assert store.remembered_vms() == {"v1", "v2"}
    revision = store.revision()
    store.forget_vms(["v1"])
    assert store.remembered_vms() == {"v2"}
    assert store.records().revision != revision
    assert store.records().placement_keys == (set_on_it,)
    assert store.records().sticky_copies == (copy("SAN", vm="v2"),)


def test_frozen_sets_that_stayed_are_not_read_twice(store: KeyStore) -> None:
    store.begin_runs([Run(vm, None, (("A", 0.1), (vm, 1.0))) for vm in ("v1", "v2")])
    before = {frozen.vm: frozen.keys for frozen in store.records().frozen_keys}
    store.begin_runs([Run("v2", None, (("A", 0.2),)), Run("v3", None, ())])
    after = {frozen.vm: frozen.keys for frozen in store.records().frozen_keys}
    assert after == {"v1": (("A", 0.1), ("v1", 1.0)), "v2": (("A", 0.2),), "v3": ()}
    assert after["v1"] is before["v1"]


FULL = rule(
    "racks", "at_most_per_domain", "tag:web db1", hosts="h1", domain_tags=("rack",),
    domains=(RuleDomain(name="r1", hosts=("h1", "h2")),), most=2, enforcing=False, priority=3.5,
)  # fmt: skip


@pytest.fixture
def rule_store(opening: Opening) -> RuleStore:
    return opening(RuleStore)


def put(rule_store: RuleStore, *rules: PlacementRule, by: str = "ann") -> None:
    rule_store.change(lambda standing: RuleChange(put=rules), changed_by=by)


def test_a_rule_is_known_whole_and_replaces_the_one_of_its_name_and_one_that_says_the_same_stays(
    rule_store: RuleStore,
) -> None:
    put(rule_store, rule("a", "x", most=1), FULL)
    put(rule_store, rule("a", "x", most=2), FULL, by="bob")
    first, second = rule_store.all_rules()
    assert (first.rule, first.changed_by) == (rule("a", "x", most=2), "bob")
    assert (second.rule, second.changed_by) == (FULL, "ann")
    assert second.changed_at > 1_600_000_000


def test_what_the_decision_raises_changes_nothing(rule_store: RuleStore) -> None:
    put(rule_store, rule("a", "x"))

    def decide(standing: tuple[PlacementRule, ...]) -> RuleChange:
        assert standing == (rule("a", "x"),)
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        rule_store.change(decide, changed_by="bob")
    assert [one.rule.name for one in rule_store.all_rules()] == ["a"]


def test_readers_of_keys_are_shown_the_rules_and_that_there_are_others(
    rule_store: RuleStore, store: KeyStore
) -> None:
    before = store.records()
    put(rule_store, FULL)
    after = store.records()
    assert (before.placement_rules, after.placement_rules) == ((), (FULL,))
    assert store.revision() == after.revision != before.revision
    rule_store.change(lambda standing: RuleChange(remove=("racks", "unknown")), changed_by="bob")
    assert store.records().placement_rules == ()
