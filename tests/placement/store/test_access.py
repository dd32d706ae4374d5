"""A store that is locked, away, not there, or none at all: what its readers and writers learn."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.sql.database import StoreAway
from ovirt_service.errors import UserError
from tests.placement.databases import database
from tests.stored import prepared


@pytest.mark.timing
def test_a_locked_store_is_away_after_its_patience(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    store = Store(url, engine="default")
    prepared(store)
    with database(url) as holder:
        holder.exec_driver_sql("BEGIN EXCLUSIVE")
        began = time.monotonic()
        with pytest.raises(StoreAway, match="database is locked"):
            prepared(store, "other", "other")
        assert time.monotonic() - began < 1  # 50 ms, on a machine that may be very busy
        assert [intent.vm for intent in store.open_intents()] == ["vm"]  # readers are not held up
    store.close()


def test_an_absent_store_is_away_for_a_reader_and_not_made(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/store.db", engine="default", create=False)
    with pytest.raises(StoreAway, match="no such file"):
        store.open_intents()
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_may_not_be_looked_for_is_away(tmp_path: Path) -> None:
    """Root may look anywhere: a name that is too long stands for a folder that is closed."""
    store = Store(f"sqlite:///{tmp_path}/{'d' * 300}/store.db", engine="default", create=False)
    with pytest.raises(StoreAway, match="name too long"):
        store.open_intents()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("nonsense", "is no database URL"),
        ("mysql://host/name", "is neither sqlite"),
        ("sqlite://", "is neither sqlite"),
    ],
)
def test_a_url_that_names_no_store_is_a_mistake(url: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        Store(url, engine="default")


def test_a_place_where_no_store_can_stand_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no directory .*absent; make it"):
        prepared(Store(f"sqlite:///{tmp_path}/absent/store.db", engine="default"))
    (tmp_path / "store.db").write_text("not a database" * 100)
    with pytest.raises(UserError, match="file is not a database"):
        prepared(Store(f"sqlite:///{tmp_path}/store.db", engine="default"))


def test_a_file_that_took_the_place_of_another_is_the_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    reader, writer, restored = (
        Store(url, engine="default", create=False),
        Store(url, engine="default"),
        Store(f"sqlite:///{tmp_path}/restored.db", engine="default"),
    )
    prepared(writer, "before", "before")
    prepared(restored, "after", "after")
    assert [intent.vm for intent in reader.open_intents()] == ["before"]
    restored.close()
    for left in ("store.db-wal", "store.db-shm"):  # else SQLite would write their content into the new file
        (tmp_path / left).unlink()
    (tmp_path / "restored.db").replace(tmp_path / "store.db")
    for store in (reader, writer):
        assert [intent.vm for intent in store.open_intents()] == ["after"]
    (tmp_path / "store.db").unlink()
    with pytest.raises(StoreAway, match="it was there, and is gone"):
        reader.open_intents()
    with pytest.raises(StoreAway, match="it was there, and is gone"):
        prepared(writer, "again", "again")
    reader.close()
    writer.close()
