"""Placement keys in the store: what is written is there, once, with who wrote it, and readers learn of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import FrozenKeys, PlacementKey, StickyCopy
from ovirt_placement.store.intents import Store
from ovirt_placement.store.keys import KeyChange, KeyStore, Run
from ovirt_placement.store.schema import VERSION
from ovirt_service.errors import UserError
from tests.placement.databases import database


@pytest.fixture
def store(url: str) -> Iterator[KeyStore]:
    opened = KeyStore(url, patience_seconds=30)
    yield opened
    opened.close()


def key(
    name: str,
    value: float | str = 1.0,
    weight: float | None = 50.0,
    *,
    level: str = "cluster",
    resource: str = "c1",
    key_class: str = "system",
) -> PlacementKey:
    return PlacementKey(
        level=level, resource=resource, key_class=key_class, name=name, value=value, weight=weight
    )


def copy(name: str, value: float = 1.0, vm: str = "v1") -> StickyCopy:
    return StickyCopy(vm=vm, name=name, value=value, weight=60.0)


def test_a_key_is_known_with_who_set_it_and_when(store: KeyStore) -> None:
    store.change([key("GEN"), key("GEN", level="server", resource="v1")], set_by="ann")
    (on_cluster, on_server) = store.all_keys()
    assert (on_cluster.key, on_server.key) == (key("GEN"), key("GEN", level="server", resource="v1"))
    assert on_cluster.set_by == on_server.set_by == "ann"
    assert on_cluster.set_at > 1_600_000_000


def test_a_key_replaces_the_one_in_its_place_only(store: KeyStore) -> None:
    store.change([key("GEN"), key("GEN", key_class="be"), key("SAN")], set_by="ann")
    store.change([key("GEN", 2.0), key("SAN")], set_by="bob")
    found = [(one.key.key_class, one.key.name, one.key.value, one.set_by) for one in store.all_keys()]
    assert found == [
        ("be", "GEN", 1.0, "ann"),
        ("system", "GEN", 2.0, "bob"),
        ("system", "SAN", 1.0, "ann"),  # nothing was changed about it
    ]


def test_what_is_decided_on_the_keys_that_stand_is_done(store: KeyStore) -> None:
    store.change([key("GEN"), key("SAN")], set_by="ann")

    def decide(standing: tuple[PlacementKey, ...]) -> KeyChange:
        assert standing == (key("GEN"), key("SAN"))
        return KeyChange(put=(key("SAN", 2.0),), remove=(key("GEN"), key("OTHER")))

    assert store.change_as(decide, set_by="bob").put == (key("SAN", 2.0),)
    assert [one.key for one in store.all_keys()] == [key("SAN", 2.0)]


def test_a_change_is_whole_or_nothing(store: KeyStore) -> None:
    store.change([key("GEN")], set_by="ann")
    revision = store.revision()
    broken = key("SAN\ud800")  # no database takes half a character
    change = KeyChange(put=(key("NEW"), broken), remove=(key("GEN"),))
    with pytest.raises((UserError, UnicodeError)):
        store.change_as(lambda _: change, set_by="ann")

    def refuse(standing: tuple[PlacementKey, ...]) -> KeyChange:
        raise UserError("not so")

    with pytest.raises(UserError, match="not so"):
        store.change_as(refuse, set_by="ann")
    assert [one.key.name for one in store.all_keys()] == ["GEN"]
    assert store.revision() == revision


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.floats() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    weight=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
@example(value=2.8824671182353285e-303, weight=1.0)  # SQLite itself would round it
def test_values_come_back_as_they_were_written(
    store: KeyStore, value: float | str, weight: float | None
) -> None:
    store.change([key("GEN", value, weight)], set_by="ann")
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
    assert records.frozen == (FrozenKeys("v2", ()),)
    assert records.copies == (copy("RACK", 2.0), copy("SAN"))


def test_a_run_takes_the_place_of_an_earlier_one(store: KeyStore) -> None:
    store.begin_runs([Run("v1", 1.0, (("Group1", 1.0),), (copy("SAN"),))])
    store.begin_runs([Run("v1", 2.0, (("Group2", 1.0),))])
    assert store.records().frozen == (FrozenKeys("v1", (("Group2", 1.0),)),)
    assert store.records().copies == (copy("SAN"),)  # not spoken of
    store.begin_runs([Run("v1", 3.0, (), (copy("SAN", 2.0),))])
    assert store.records().copies == (copy("SAN", 2.0),)


def test_every_writing_has_a_revision_of_its_own(store: KeyStore) -> None:
    seen = [store.revision()]
    store.change([key("GEN")], set_by="ann")
    seen.append(store.revision())
    store.begin_runs([Run("v1", None, ())])
    seen.append(store.revision())
    store.end_runs(["v1"])
    seen.append(store.records().revision)
    assert len(set(seen)) == 4
    store.begin_runs([])
    store.end_runs([])
    assert store.revision() == seen[-1]


def test_nobody_decides_on_keys_that_another_changes_meanwhile(url: str) -> None:
    """Each counts one key up from what it sees: who saw an old number would hide somebody's turn."""
    turns, authors = 5, [f"author{number}" for number in range(6)]
    start = threading.Barrier(len(authors))

    def count(standing: tuple[PlacementKey, ...]) -> KeyChange:
        (before,) = (float(one.value) for one in standing) if standing else (0.0,)
        return KeyChange(put=(key("TURNS", before + 1),))

    def take_turns(name: str) -> None:
        store = KeyStore(url, patience_seconds=30)
        start.wait()
        for _ in range(turns):
            store.change_as(count, set_by=name)
        store.close()

    KeyStore(url).change(set_by="ann")  # makes the tables
    threads = [threading.Thread(target=take_turns, args=(name,)) for name in authors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = KeyStore(url)
    assert [one.key.value for one in reader.all_keys()] == [turns * len(authors)]
    reader.close()


def test_a_vm_is_missing_since_it_was_first_missed(url: str, store: KeyStore) -> None:
    assert store.mark_missing(["v1"]) == {"v1": 0.0}
    with database(url) as connection:
        connection.exec_driver_sql("UPDATE missing_vms SET since = since - 1000")
    ages = store.mark_missing(["v1", "v2"])
    assert 1000 <= ages["v1"] < 1060
    assert ages["v2"] == 0.0
    assert store.mark_missing(["v2"]).keys() == {"v2"}  # v1 was there again
    assert store.mark_missing(["v1"]) == {"v1": 0.0}


def test_a_vm_that_is_forgotten_leaves_nothing_but_what_people_set(store: KeyStore) -> None:
    set_on_it = key("GEN", level="server", resource="v1")
    store.change([set_on_it], set_by="ann")
    store.begin_runs([Run(vm, None, (), (copy("SAN", vm=vm),)) for vm in ("v1", "v2")])
    store.end_runs(["v2"])
    store.mark_missing(["v1", "v2"])
    assert store.remembered_vms() == {"v1", "v2"}
    revision = store.revision()
    store.forget_vms(["v1"])
    assert store.remembered_vms() == {"v2"}
    assert store.records().revision != revision
    assert store.records().keys == (set_on_it,)
    assert store.records().copies == (copy("SAN", vm="v2"),)


def test_a_store_of_the_former_release_is_upgraded_and_keeps_what_it_has(url: str) -> None:
    former = Store(url)
    former.prepare(vm="v1", cluster="c", source=None, target="h1", correlation_id="one")
    former.close()
    with database(url) as connection:  # version 1 had intents only
        for table in ("placement_keys", "frozen_keys", "sticky_copies", "key_revision", "missing_vms"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql("UPDATE schema_version SET version = 1")
    reader = KeyStore(url, create=False)
    with pytest.raises(UserError, match="key_revision"):
        reader.records()
    reader_of_intents = Store(url, create=False)
    assert len(reader_of_intents.open_intents()) == 1
    writer = KeyStore(url, patience_seconds=30)
    writer.change([key("GEN")], set_by="ann")
    assert len(writer.records().keys) == len(reader.records().keys) == 1
    assert len(reader_of_intents.open_intents()) == 1
    with database(url) as connection:
        assert connection.exec_driver_sql("SELECT version FROM schema_version").scalars().all() == [VERSION]
    for opened in (reader, reader_of_intents, writer):
        opened.close()


def test_a_store_without_missing_vms_is_upgraded_and_its_values_stay_what_they_are(url: str) -> None:
    former = KeyStore(url)
    former.change([key("GEN", 0.5), key("SITE", "1")], set_by="ann")
    revision = former.revision()
    former.close()
    with database(url) as connection:  # version 2 had values as they are
        connection.exec_driver_sql("DROP TABLE missing_vms")
        connection.exec_driver_sql("UPDATE placement_keys SET value = '0.5' WHERE name = 'GEN'")
        connection.exec_driver_sql("UPDATE placement_keys SET value = '\"1\"' WHERE name = 'SITE'")
        connection.exec_driver_sql("UPDATE schema_version SET version = 2")
    for create in (False, True):
        opened = KeyStore(url, create=create)
        assert [one.key.value for one in opened.all_keys()] == [0.5, "1"]
        assert opened.revision() == revision
        opened.close()
    writer = KeyStore(url)
    assert writer.mark_missing(["v1"]) == {"v1": 0.0}
    writer.close()


def test_frozen_sets_that_stayed_are_not_read_twice(store: KeyStore) -> None:
    store.begin_runs([Run(vm, None, (("A", 0.1), (vm, 1.0))) for vm in ("v1", "v2")])
    before = {frozen.vm: frozen.keys for frozen in store.records().frozen}
    store.begin_runs([Run("v2", None, (("A", 0.2),)), Run("v3", None, ())])
    after = {frozen.vm: frozen.keys for frozen in store.records().frozen}
    assert after == {"v1": (("A", 0.1), ("v1", 1.0)), "v2": (("A", 0.2),), "v3": ()}
    assert after["v1"] is before["v1"]
