"""Placement keys in the store: what is written is there, once, with who wrote it, and readers learn of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.errors import UserError
from ovirt_placement.model import FrozenKeys, PlacementKey, StickyCopy
from ovirt_placement.store import Store
from ovirt_placement.store_keys import KeyPlace, KeyStore, Run
from ovirt_placement.store_schema import VERSION
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


def test_only_what_was_there_is_removed(store: KeyStore) -> None:
    store.change([key("GEN"), key("SAN")], set_by="ann")
    gen, other = KeyPlace.of(key("GEN")), KeyPlace.of(key("OTHER"))
    assert store.change(remove=[gen, other, gen], set_by="ann") == (gen,)
    assert [one.key.name for one in store.all_keys()] == ["SAN"]


def test_a_change_is_whole_or_nothing(store: KeyStore) -> None:
    store.change([key("GEN")], set_by="ann")
    broken = key("SAN\ud800")  # no database takes half a character
    with pytest.raises((UserError, UnicodeError)):
        store.change([key("NEW"), broken], [KeyPlace.of(key("GEN"))], set_by="ann")
    assert [one.key.name for one in store.all_keys()] == ["GEN"]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.floats() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    weight=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
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


def test_two_who_change_at_once_both_do(url: str) -> None:
    names = [f"K{number}" for number in range(8)]
    stores = {name: KeyStore(url, patience_seconds=30) for name in names}
    start = threading.Barrier(len(names))

    def change(name: str) -> None:
        start.wait()
        stores[name].change([key(name), key("ALL", value=float(name[1:]))], set_by=name)

    threads = [threading.Thread(target=change, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.key.name for one in stores["K0"].all_keys()] == ["ALL", *names]
    for store in stores.values():
        store.close()


def test_a_store_of_the_former_release_is_upgraded_and_keeps_what_it_has(url: str) -> None:
    former = Store(url)
    former.prepare(vm="v1", cluster="c", source=None, target="h1", correlation_id="one")
    former.close()
    with database(url) as connection:  # version 1 had intents only
        for table in ("placement_keys", "frozen_keys", "sticky_copies", "key_revision"):
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
