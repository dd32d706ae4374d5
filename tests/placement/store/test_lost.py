"""A store that is gone: nobody begins it again in silence, and a backup brings all of it back."""

import errno
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from ovirt_placement.model import PlacementKey
from ovirt_placement.store import backup
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.keys import KeyChange, KeyStore
from ovirt_placement.store.orders import PauseStore
from ovirt_placement.store.sql.database import Database, StoreAway, StoreLost
from ovirt_placement.store.sql.schema import metadata
from ovirt_placement.store.user_actions import Act, UserActionKind, UserActionStore
from ovirt_service.errors import UserError
from tests.placement.databases import database as opened_database
from tests.stored import prepared

KEY = PlacementKey("server", "v", "system", "load", 1.5, 0.25)
#: Who restores.
BY = ("default", Act(kind=UserActionKind.STORE_RESTORE, login="eve", subject="backup"))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where systemd lets services keep things."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))


def opened(url: str) -> Database:
    return Database(url, patience_seconds=5, create=True)


def fill(url: str) -> None:
    with closing(intents(url)) as store:
        prepared(store, "v")
    with closing(KeyStore(url, engine="default", patience_seconds=5)) as keys:
        keys.change(lambda _: KeyChange((KEY,)), set_by="me")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def restore(url: str, file: Path, *, replace: bool = True) -> None:
    backup.restore(opened(url), backup.read(file), BY, replace=replace)


def lose(url: str) -> None:
    if url.startswith("sqlite"):
        os.unlink(url.removeprefix("sqlite:///"))
        return
    with opened_database(url) as connection:
        metadata.drop_all(connection)


def cut_off(url: str) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(url.removeprefix("sqlite:///") + ending).unlink(missing_ok=True)
    Path(url.removeprefix("sqlite:///")).touch()


def intents(url: str, **more: Any) -> Store:
    return Store(url, engine="default", patience_seconds=5, **more)


@pytest.mark.parametrize("loss", [lose, cut_off], ids=["it is gone", "it has no content"])
def test_a_store_that_is_lost_is_not_made_again_until_that_is_said(
    url: str, loss: Callable[[str], None]
) -> None:
    if loss is cut_off and not url.startswith("sqlite"):
        pytest.skip("only a file can be empty")
    fill(url)
    running = intents(url)
    assert running.open_intents()
    loss(url)
    for store in (running, intents(url)):
        for _ in range(2):
            with pytest.raises(StoreAway):
                store.open_intents()
        with pytest.raises(StoreLost, match="it was there, and is gone or empty: bring it back by"):
            store.open_intents()
        store.close()
    with pytest.raises(StoreLost):
        intents(url, create=False).open_intents()
    opened(url).begin_again(lambda connection: None)
    assert intents(url).open_intents() == ()


def test_a_running_part_goes_on_as_soon_as_the_store_is_back(url: str, file: Path) -> None:
    fill(url)
    running = intents(url)
    before = running.open_intents()
    backup.write(opened(url), file)
    lose(url)
    with pytest.raises(StoreAway):
        running.open_intents()
    restore(url, file, replace=False)
    assert [(one.id, one.vm) for one in running.open_intents()] == [(one.id, one.vm) for one in before]


def test_all_that_a_store_holds_comes_back(url: str, file: Path) -> None:
    fill(url)
    keys = KeyStore(url, engine="default", patience_seconds=5)
    before, revision = keys.records(), keys.revision()
    assert backup.write(opened(url), file) == backup.count(opened(url)) == 3  # with who set the key
    assert file.stat().st_mode & 0o077 == 0
    keys.change(lambda _: KeyChange(remove=(KEY,)), set_by="me")
    with pytest.raises(UserError, match="is not empty"):
        restore(url, file, replace=False)
    restore(url, file)
    assert keys.records().placement_keys == before.placement_keys
    assert keys.revision() != revision  # who remembers keys by it reads them again
    second = prepared(intents(url), "w", "two")
    assert second.id not in {one.id for one in intents(url).open_intents() if one.vm == "v"}
    actions = UserActionStore(url, engine="default", patience_seconds=5).actions(since_seconds=600)
    assert [(one.kind, one.login) for one in actions] == [("keys", "me"), ("store_restore", "eve")]


def test_a_row_of_every_table_comes_back(url: str, file: Path) -> None:
    fill(url)  # makes the tables
    values = {"INTEGER": 7, "FLOAT": 7.5, "BOOLEAN": True, "VARCHAR": "x", "TEXT": "x", "JSON": ["x"]}
    given = ("schema_version", "key_revision")
    tables = [table for table in metadata.sorted_tables if table.name not in given]

    def rows() -> dict[str, list[tuple[object, ...]]]:
        with opened(url).transaction() as connection:
            return {one.name: [tuple(row) for row in connection.execute(one.select())] for one in tables}

    with opened(url).transaction() as connection:
        for table in tables:
            row = {column.key: values[str(column.type).partition("(")[0]] for column in table.columns}
            connection.execute(table.insert().values(row))
    before = rows()
    assert all(before.values())
    backup.write(opened(url), file)
    restore(url, file)
    after = rows()
    after["user_actions"].pop()  # who restored
    assert after == before


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        *((one, "is no backup of a store") for one in (b"", b"\xff", b"[" * 100_000, b'{"format": 1}')),
        (b'{"format": 1, "schema": 99, "tables": {}}', "was written with schema version 99"),
    ],
)
def test_what_is_no_backup_is_said(file: Path, content: bytes, complaint: str) -> None:
    file.write_bytes(content)
    with pytest.raises(UserError, match=complaint):
        backup.read(file)


def test_a_row_that_is_none_changes_nothing(url: str, file: Path) -> None:
    fill(url)
    backup.write(opened(url), file)
    spoilt = backup.read(file)
    spoilt.tables["leases"] = [{"engine": "default"}]
    with pytest.raises(UserError, match="a row in leases"):
        backup.restore(opened(url), spoilt, BY, replace=True)
    assert intents(url).open_intents()


def test_a_folder_that_is_missing_is_said_where_a_store_is_brought_back(tmp_path: Path, file: Path) -> None:
    """As a new machine has none yet."""
    fill(f"sqlite:///{tmp_path}/store.db")
    backup.write(opened(f"sqlite:///{tmp_path}/store.db"), file)
    absent = Database(f"sqlite:///{tmp_path}/absent/store.db", patience_seconds=5, create=False)
    with closing(absent), pytest.raises(UserError, match=r"no directory .*absent; make it, or set"):
        backup.restore(absent, backup.read(file), BY, replace=False)


def test_while_one_makes_a_store_again_no_other_does(tmp_path: Path, file: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    fill(url)
    backup.write(opened(url), file)
    (tmp_path / "store.db").write_bytes(b"no database" * 1000)
    with opened(url).changed_alone(), pytest.raises(UserError, match="another command makes or restores it"):
        restore(url, file)
    restore(url, file)
    assert intents(url).open_intents()


def test_of_a_backup_that_does_not_fit_nothing_is_left(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    url = f"sqlite:///{tmp_path}/store.db"
    fill(url)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_room)
        with pytest.raises(UserError, match="cannot write the backup: No space left on device"):
            backup.write(opened(url), file)
    assert not file.exists()
    assert backup.write(opened(url), file) == 3
    with pytest.raises(UserError, match="cannot write the backup: File exists"):
        backup.write(opened(url), file)


def test_of_a_store_that_cannot_be_made_again_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"no database")

    def is_full(connection: object) -> None:
        raise OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))

    with pytest.raises(StoreAway, match="no room is left on its file system: make room there; df -h"):
        opened(f"sqlite:///{tmp_path}/store.db").begin_again(is_full)
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]
    assert (tmp_path / "store.db").read_bytes() == b"no database"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE intents SET state = 'prepaped'", "Invalid enum value 'prepaped'"),
        ("UPDATE intents SET outcome = '[['", "Expecting value"),
        ("UPDATE intents SET vm = CAST(x'ff' AS TEXT)", "Could not decode"),
    ],
)
def test_rows_that_cannot_be_read_are_a_complaint_and_a_backup_takes_their_place(
    tmp_path: Path, file: Path, damage: str, reason: str
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    fill(url)
    backup.write(opened(url), file)
    with opened_database(url) as connection:
        connection.exec_driver_sql(damage)
    with closing(HistoryStore(url, engine="default", patience_seconds=5)) as store:
        with pytest.raises(StoreAway, match=f"{reason}.*cannot read: .*restore BACKUP --replace brings back"):
            store.unplanned(since_seconds=600)
        restore(url, file)
        assert [one.vm for one in store.unplanned(since_seconds=600)] == ["v"]


def test_words_of_sqlite_that_are_no_text_are_damage(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    fill(url)
    with opened_database(url) as connection:
        connection.exec_driver_sql("PRAGMA writable_schema = ON")
        damage = "UPDATE sqlite_master SET sql = CAST(x'ff28' AS TEXT) WHERE name = 'cycles'"
        connection.exec_driver_sql(damage)
    with pytest.raises(StoreLost, match="is damaged"):
        intents(url).open_intents()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://user:secret@host:port/name", UserError),
        ("secret", UserError),
        ("mysql://user:secret@host/name", UserError),
        ("mysql://host/name?password=secret", UserError),
        ("postgresql://me:secret@127.0.0.1:1/x", StoreAway),
        ("postgresql://me@127.0.0.1:1/x?password=secret", StoreAway),
    ],
)
def test_no_url_is_printed_with_its_password(url: str, kind: type[UserError]) -> None:
    with pytest.raises(kind) as refusal, Database(url, patience_seconds=1, create=False).transaction():
        pass
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("ending", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path)])
def test_what_is_no_file_in_the_place_of_the_stores_is_not_opened_and_what_helps_is_said(
    ending: str, plant: Callable[[Path], None], tmp_path: Path
) -> None:
    url, place = f"sqlite:///{tmp_path}/store.db", tmp_path / f"store.db{ending}"
    with closing(PauseStore(url, engine="default")) as store:
        assert store.pauses() == ()
    place.unlink(missing_ok=True)
    plant(place)
    said = pytest.raises(StoreAway, match=f"{place} is no regular file: rm -r {place} removes it")
    with closing(PauseStore(url, engine="default")) as store, said:
        store.pauses()
