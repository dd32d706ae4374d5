"""Several engines in one store: each has rows of its own, though the ids are the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy

from ovirt_placement.model import FrozenKeys, PlacementKey
from ovirt_placement.store.intents import ImpossibleTransition, Store
from ovirt_placement.store.keys import KeyChange, KeyStore, Run
from ovirt_placement.store.schema import metadata
from ovirt_service.errors import UserError
from tests.placement.databases import database
from tests.placement.store.parts import OURS, THEIRS, Parts, key
from tests.stored import prepared


@pytest.fixture
def parts(url: str) -> Iterator[tuple[Parts, Parts]]:
    opened = Parts(url, OURS), Parts(url, THEIRS)
    yield opened
    for each in opened:
        each.close()


def rows_of(url: str, engine: str) -> dict[str, list[tuple[Any, ...]]]:
    with database(url) as connection:
        return {
            table: [
                tuple(map(repr, row))
                for row in connection.exec_driver_sql(f"SELECT * FROM {table} WHERE engine = '{engine}'")
            ]
            for table in metadata.tables
            if table != "schema_version"
        }


def test_every_row_says_whose_it_is(url: str, parts: tuple[Parts, Parts]) -> None:
    for each in parts:
        each.fill()
    assert all(rows_of(url, OURS).values())
    assert all(rows_of(url, THEIRS).values())


def test_what_one_does_touches_no_row_of_the_other(url: str, parts: tuple[Parts, Parts]) -> None:
    ours, theirs = parts
    for each in parts:
        each.fill()
    rows, read = rows_of(url, THEIRS), theirs.everything()
    ours.change_everything()
    assert rows_of(url, THEIRS) == rows
    assert theirs.everything() == read
    left = {table for table, found in rows_of(url, OURS).items() if found}
    kept = {"cycles", "enforcer_settings", "samples", "user_actions", "ha_announcements"}
    kept |= {"maintenance_runs", "maintenance_hosts"}
    assert left == kept | {"key_revision", "leases", "resumptions", "approvals"}


def test_what_one_has_the_other_does_not_see(parts: tuple[Parts, Parts]) -> None:
    ours, theirs = parts
    nothing = theirs.everything()
    ours.fill()
    assert theirs.everything() == nothing
    (intent,) = ours.intents.open_intents()
    assert theirs.intents.open_intents() == theirs.intents.history(within_seconds=1e12) == ()
    with pytest.raises(ImpossibleTransition, match=f"intent {intent.id} does not exist"):
        theirs.intents.accept(intent.id)
    assert theirs.keys.mark_missing(["v1"]) == {"v1": 0.0}
    theirs.keys.begin_runs([Run("v1", 5.0, ())])
    assert theirs.keys.records().frozen == (FrozenKeys("v1", ()),)
    assert ours.keys.records().frozen == (FrozenKeys("v1", (("A", 1.0),)),)


def test_a_correlation_id_is_one_engines_alone(parts: tuple[Parts, Parts]) -> None:
    for each, refused in zip(parts, (False, True), strict=True):
        wanted = {"vm": "v", "cluster": "c", "source": None, "target": "h", "correlation_id": "same"}
        if refused:
            with pytest.raises(UserError):
                prepared(each.intents, **wanted)
        else:
            prepared(each.intents, **wanted)


@pytest.mark.system
def test_no_statement_forgets_the_engine(parts: tuple[Parts, Parts]) -> None:
    """Whatever is asked of a store, its SQL names the engine."""
    ours, _ = parts
    ours.fill()
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        statements.append(" ".join(statement.split()))

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
    try:
        ours.everything()
        ours.change_everything()
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)
    about_rows = [each for each in statements if any(f" {table}" in each for table in metadata.tables)]
    assert len(about_rows) > 30
    assert [each for each in about_rows if "engine = " not in each and "(engine" not in each] == []


def test_the_first_writers_of_an_engine_come_at_once(url: str) -> None:
    """Its revision is made by the first, and counted up by the others."""
    start, names = threading.Barrier(6), [f"author{number}" for number in range(6)]
    Store(url, engine=OURS).open_intents()  # makes the tables

    def count(placement: tuple[PlacementKey, ...]) -> KeyChange:
        return KeyChange(put=(key(float(placement[0].value) + 1 if placement else 1.0),))

    def come(name: str) -> None:
        store = KeyStore(url, engine=THEIRS, patience_seconds=30)
        start.wait()
        store.change(count, set_by=name)
        store.close()

    threads = [threading.Thread(target=come, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = KeyStore(url, engine=THEIRS)
    assert [one.key.value for one in found.all_keys()] == [len(names)]
    found.close()
