"""A store that an earlier release made: a later one brings it to its own version, whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ovirt_placement.model import PlacementKey
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.sql import database as opening
from ovirt_placement.store.sql import versions
from ovirt_placement.store.sql.database import StoreAway
from tests.placement.databases import database
from tests.stored import put_keys

KEY = PlacementKey(level="cluster", resource="c1", key_class="be", name="A", value=1.0, weight=1.0)


def opened(url: str, *, create: bool = True) -> KeyStore:
    return KeyStore(url, engine="default", patience_seconds=30, create=create)


def keys(url: str, *, create: bool = True) -> list[PlacementKey]:
    store = opened(url, create=create)
    try:
        return [found.key for found in store.all_keys()]
    finally:
        store.close()


def version_of(url: str) -> list[int]:
    with database(url) as connection:
        return list(connection.exec_driver_sql("SELECT version FROM schema_version").scalars())


def columns(url: str) -> int:
    with database(url) as connection:
        return len(connection.exec_driver_sql("SELECT * FROM sticky_copies").keys())


@pytest.fixture
def present(url: str) -> str:
    """A store of version 1 that holds something."""
    store = opened(url)
    put_keys(store, [KEY])
    store.close()
    assert version_of(url) == [1]
    return url


def of_the_next_release(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    """The release in which version 2 comes, by these statements."""

    def migrate(connection: object) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)  # type: ignore[attr-defined]

    monkeypatch.setattr(versions, "MIGRATIONS", (migrate,))
    for module in (versions, opening):
        monkeypatch.setattr(module, "VERSION", 2)


ADDED = "ALTER TABLE sticky_copies ADD COLUMN noted INTEGER"


def test_a_later_release_takes_the_step_that_is_missing_and_loses_nothing(
    present: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = columns(present)
    of_the_next_release(monkeypatch, ADDED)
    words = r"has schema version 1 of an earlier release, and this one needs 2: start ovirt-enforcer"
    with pytest.raises(StoreAway, match=words):
        keys(present, create=False)  # who may not write leaves that to who may
    assert (version_of(present), columns(present)) == ([1], before)
    for _ in range(2):
        assert keys(present) == [KEY]
        assert (version_of(present), columns(present)) == ([2], before + 1)


def test_a_step_that_fails_leaves_all_as_it_was(present: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = columns(present)
    with monkeypatch.context() as later:
        of_the_next_release(later, ADDED, "DROP TABLE there_is_none")
        with pytest.raises(StoreAway, match="there_is_none"):
            keys(present)
    assert (version_of(present), columns(present)) == ([1], before)
    assert keys(present) == [KEY]


@pytest.mark.system
def test_a_step_that_is_killed_leaves_all_as_it_was(present: str) -> None:
    before = columns(present)
    program = f"""
import os, signal
from ovirt_placement.store.sql import database, versions
from ovirt_placement.store.keys import KeyStore

def migrate(connection):
    connection.exec_driver_sql({ADDED!r})
    os.kill(os.getpid(), signal.SIGKILL)

versions.MIGRATIONS, versions.VERSION, database.VERSION = (migrate,), 2, 2
KeyStore({present!r}, engine="default", patience_seconds=30).all_keys()
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (version_of(present), columns(present)) == ([1], before)
    assert keys(present) == [KEY]


def test_tables_that_another_made_are_seen_by_a_connection_that_found_none(url: str) -> None:
    """SQLite 3.26 answers some questions about tables from what the connection has read before."""
    with database(url) as late:
        assert versions.version(late) is None
        with database(url) as early:
            versions.make_or_upgrade(early)
        versions.make_or_upgrade(late)
    assert version_of(url) == [versions.VERSION]
