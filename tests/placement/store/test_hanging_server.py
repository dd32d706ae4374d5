"""A PostgreSQL server that is stopped ends a write with an error in bounded time, whenever that happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ovirt_placement.store.orders import ALL_CLUSTERS, PauseStore
from ovirt_placement.store.sql import connections
from ovirt_placement.store.sql.database import Database, StoreAway, StoreUnclear
from ovirt_service.errors import OutcomeUnknown, UserError
from tests.placement.postgres_server import PostgresServer, running
from tests.proxy.running import eventually

pytestmark = pytest.mark.system

PATIENCE = 1.0
#: A trigger of the commit.
_REFUSED_LATE = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no such moment'; END $$;
    CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON pauses DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse();
    UPDATE pauses SET reason = 'refused'
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running() as found:
        yield found


@pytest.fixture
def store(server: PostgresServer) -> Iterator[PauseStore]:
    found = PauseStore(server.url, engine="default", patience_seconds=PATIENCE)
    found.pause(ALL_CLUSTERS, cluster_name="", reason="before", set_by="eve", seconds=None)
    yield found
    found.close()


def pause(store: PauseStore) -> None:
    store.pause(ALL_CLUSTERS, cluster_name="", reason="meanwhile", set_by="eve", seconds=None)


def reasons(store: PauseStore) -> list[str]:
    return [one.reason for one in store.pauses()]


def test_one_that_hangs_before_a_write_is_away_and_nothing_is_written(
    server: PostgresServer, store: PauseStore
) -> None:
    began = time.monotonic()
    with server.hanging(), pytest.raises(StoreAway):
        pause(store)
    # The connection from before, and a try of another one, which takes 2 s at the least.
    assert time.monotonic() - began < 20.0
    assert reasons(store) == ["before"]


def write_while_it_hangs(server: PostgresServer, database: Database) -> None:
    with database.transaction() as connection:
        connection.exec_driver_sql("UPDATE pauses SET reason = 'half'")
        with server.hanging():
            connection.exec_driver_sql("UPDATE pauses SET reason = 'meanwhile'")


def test_one_that_hangs_amid_a_write_is_away_and_nothing_is_written(
    server: PostgresServer, store: PauseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LONGEST_STATEMENT_SECONDS", 1)
    database = Database(server.url, patience_seconds=PATIENCE + 1, create=False)
    with pytest.raises(StoreAway, match="no answer within 3 s"):
        write_while_it_hangs(server, database)
    database.close()
    assert reasons(store) == ["before"]


def commit_while_it_hangs(server: PostgresServer, database: Database) -> None:
    with ExitStack() as hanging, database.transaction() as connection:
        connection.exec_driver_sql("UPDATE pauses SET reason = 'unclear'")
        hanging.enter_context(server.hanging())


def test_one_that_hangs_in_the_commit_says_that_it_may_be_written(
    server: PostgresServer, store: PauseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LONGEST_STATEMENT_SECONDS", 1)
    database = Database(server.url, patience_seconds=PATIENCE + 1, create=False)
    with pytest.raises(StoreUnclear, match="may be there, or not: look"):
        commit_while_it_hangs(server, database)
    database.close()
    # The server has gone on with what it had been sent.
    eventually(lambda: reasons(store) == ["unclear"])


def test_a_commit_that_is_refused_says_what_is_wrong_and_nothing_is_written(
    server: PostgresServer, store: PauseStore
) -> None:
    database = Database(server.url, patience_seconds=PATIENCE, create=False)
    with (
        pytest.raises(UserError, match="no such moment") as refused,
        database.transaction() as connection,
    ):
        connection.exec_driver_sql(_REFUSED_LATE)
    assert not isinstance(refused.value, OutcomeUnknown)
    database.close()
    assert reasons(store) == ["before"]
