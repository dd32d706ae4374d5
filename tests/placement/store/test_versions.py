"""The store's versions: from each that ever stood to today's, with all that it held, whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sqlalchemy

from ovirt_placement.model import FrozenKeys, PlacementKey, StickyCopy
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.intents import IntentState, Store, StoreAway
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.schema import metadata
from ovirt_placement.store.versions import MIGRATIONS, VERSION, make_or_upgrade
from ovirt_placement.store.versions import version as version_seen
from tests.placement.databases import database
from tests.placement.store.former_stores import (
    FORMER,
    as_far_as,
    make_former,
    rows,
    shape,
    upgrade,
    version_of,
    with_todays_names,
    without_engine,
)
from tests.stored import intent_of, prepared, put_keys

EVERY = pytest.mark.parametrize("version", FORMER)


@EVERY
def test_every_former_store_becomes_todays_and_keeps_what_it_held(url: str, version: int) -> None:
    make_former(url, version)
    before = with_todays_names(rows(url, version))
    upgrade(url)
    assert version_of(url) == [VERSION]
    after = rows(url, version)
    assert all(row["engine"] == "default" for table in after.values() for row in table)
    assert as_far_as(after, before) == without_engine(before)


#: What an intent said in a former store, and what it has said since: its cause, and words of its own.
ERRORS = {
    "never reached the engine": (Cause.NEVER_ASKED, None),
    "refused: no room": (Cause.TARGET_REFUSED, "no room"),
    "refused: not now: it is locked": (Cause.VM_REFUSED, "it is locked"),
    "no answer, and no trace of it in the engine": (Cause.NO_TRACE, None),
    "no answer, and no trace of it in the engine: refused: no": (Cause.NO_TRACE, "refused: no"),
    "it is back on its source": (None, "it is back on its source"),
}


@EVERY
def test_what_errors_began_with_are_causes_and_read_as_before(url: str, version: int) -> None:
    make_former(url, version)
    with database(url) as connection:
        intents = sqlalchemy.Table("intents", sqlalchemy.MetaData(), autoload_with=connection)
        columns = [
            column for column in intents.columns if column.name not in ("id", "correlation_id", "error")
        ]
        for number, error in enumerate(ERRORS):
            same = sqlalchemy.select(
                sqlalchemy.literal(1000 + number),
                sqlalchemy.literal(error),
                sqlalchemy.literal(error),
                *columns,
            ).where(intents.c.correlation_id == "two")
            names = ["id", "correlation_id", "error", *columns]
            connection.execute(sqlalchemy.insert(intents).from_select(names, same))
    store = Store(url, engine="default", patience_seconds=30)
    found = {error: intent_of(store, error) for error in ERRORS}
    store.close()
    read = {error: one and (one.cause, one.error, one.reason) for error, one in found.items()}
    assert read == {error: (cause, words, error) for error, (cause, words) in ERRORS.items()}


@EVERY
def test_what_a_former_store_held_is_read_as_what_it_was(url: str, version: int) -> None:
    make_former(url, version)
    store = Store(url, engine="default", patience_seconds=30)
    (open_one,) = store.open_intents()
    assert (open_one.vm, open_one.state, open_one.updated) == ("v3", IntentState.ACCEPTED, 1790000012.0)
    refused = intent_of(store, "two")
    assert refused is not None
    found = refused.error, refused.memory_mb, refused.created
    assert found == ('no host: "é" -- \\', None, 1790000001.25)
    fresh = prepared(store, vm="v4", cluster="c1", source=None, target="h1", correlation_id="four")
    assert fresh.id == 4
    store.close()
    keys = KeyStore(url, engine="default", patience_seconds=30)
    records = keys.records()
    values = {key.name: key.value for key in records.keys}
    assert values == {
        **({"BARE": 0.30000000000000004, "WORD": "1"} if version >= 2 else {}),
        **({"LISTED": 2.8824671182353285e-303} if version >= 3 else {}),
    }
    if version >= 2:
        assert records.revision == 4711
        assert set(records.frozen) == {FrozenKeys("v1", (("A", 0.1), ("B", 2.0))), FrozenKeys("v2", ())}
        assert records.copies == (StickyCopy("v1", "RACK", 2.0, 60.0), StickyCopy("v1", "SAN", 0.1, 60.0))
    assert (keys.mark_missing(["v2"])["v2"] > 0) == (version >= 3)
    keys.close()


@EVERY
def test_the_steps_lead_to_the_tables_of_a_fresh_store(url: str, version: int) -> None:
    make_former(url, version)
    upgrade(url)
    stepwise = shape(url)
    with database(url) as connection:
        metadata.drop_all(connection)
        make_or_upgrade(connection)
    assert version_of(url) == [VERSION]
    assert stepwise == shape(url)


def test_a_step_stands_for_each_version() -> None:
    """And means the same for ever: it uses nothing that may change with the tables of today."""
    folder = Path(sys.modules[KeyStore.__module__].__file__ or "").parent / "migrations"
    steps = list(folder.glob("version_*.py"))
    assert not any("ovirt_placement" in step.read_text() for step in steps)
    numbers = sorted(step.name.split("_")[1] for step in steps)
    assert numbers == [f"{number:04}" for number in range(2, VERSION + 1)]
    assert [step.__module__.split("_")[2] for step in MIGRATIONS] == numbers


@EVERY
def test_who_may_not_write_waits_for_who_may(url: str, version: int) -> None:
    make_former(url, version)
    before = rows(url, version)
    readers = [part(url, engine="default", create=False) for part in (Store, KeyStore)]
    for reader in readers:
        with pytest.raises(StoreAway, match=rf"has schema version {version} of an earlier release, .* start"):
            reader.open_intents() if isinstance(reader, Store) else reader.records()
    assert (version_of(url), rows(url, version)) == ([version], before)
    upgrade(url)
    for reader in readers:
        reader.open_intents() if isinstance(reader, Store) else reader.records()
        reader.close()


def test_the_first_of_several_who_write_meanwhile_is_not_undone(url: str) -> None:
    """Who came later finds the tables made, and what the first wrote into them."""
    make_former(url, 3)
    first, second = (KeyStore(url, engine="default", patience_seconds=30) for _ in range(2))
    key = PlacementKey(level="cluster", resource="c1", key_class="be", name="A", value=1.0, weight=1.0)
    put_keys(first, [key])
    assert key in second.records().keys
    first.close()
    second.close()


def test_tables_that_another_made_are_seen_by_a_connection_that_found_none(url: str) -> None:
    """SQLite 3.26 answers some questions about tables from what the connection has read before."""
    with database(url) as late:
        assert version_seen(late) is None
        with database(url) as early:
            make_or_upgrade(early)
        make_or_upgrade(late)
    assert version_of(url) == [VERSION]
