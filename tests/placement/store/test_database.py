"""A store that is locked, away or of another engine: what its readers learn."""

import re
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ovirt_placement import store
from ovirt_placement.store.enforcer.history import HistoryStore, StepOutcome
from ovirt_placement.store.enforcer.intents import ImpossibleTransition, Store
from ovirt_placement.store.sql import schema
from ovirt_placement.store.sql.access import EngineRows, StoreAccess
from ovirt_placement.store.sql.connections import find_server_fault, parse_url
from ovirt_placement.store.sql.database import Database, StoreAway
from ovirt_placement.store.sql.schema import metadata, missing_vms, schema_version
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


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("store.db", "no such file"),
        # Root may look anywhere: a name that is too long stands for a folder that is closed.
        (f"{'d' * 300}/store.db", "name too long"),
    ],
    ids=["absent", "closed"],
)
def test_a_store_that_is_not_there_or_may_not_be_looked_for_is_away_and_not_made(
    tmp_path: Path, place: str, complaint: str
) -> None:
    store = Store(f"sqlite:///{tmp_path}/{place}", engine="default", create=False)
    with pytest.raises(StoreAway, match=complaint):
        store.open_intents()
    assert list(tmp_path.iterdir()) == []


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


def test_what_no_waiting_helps_with_is_a_mistake_whatever_the_folders_name(tmp_path: Path) -> None:
    (tmp_path / "locked" / "store.db").mkdir(parents=True)
    database = Database(f"sqlite:///{tmp_path}/locked/store.db", patience_seconds=0.05, create=True)
    with pytest.raises(UserError, match="is no regular file") as caught:
        database.check_writable()
    assert not isinstance(caught.value, StoreAway)


def test_a_file_that_took_the_place_of_another_is_the_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    reader, writer = (Store(url, engine="default", create=create) for create in (False, True))
    with closing(Store(f"sqlite:///{tmp_path}/restored.db", engine="default")) as restored:
        prepared(restored, "after", "after")
    prepared(writer, "before", "before")
    assert [intent.vm for intent in reader.open_intents()] == ["before"]
    for left in ("store.db-wal", "store.db-shm"):  # else SQLite would write their content into the new file
        (tmp_path / left).unlink()
    (tmp_path / "restored.db").replace(tmp_path / "store.db")
    for part in (reader, writer):
        assert [intent.vm for intent in part.open_intents()] == ["after"]
    (tmp_path / "store.db").unlink()
    for ask in (reader.open_intents, lambda: prepared(writer, "again", "again")):
        with pytest.raises(StoreAway, match="it was there, and is gone"):
            ask()
    reader.close()
    writer.close()


OURS, THEIRS = "ours", "theirs"
VM = missing_vms.c.vm


def held(rows: EngineRows) -> list[tuple[str, float]]:
    return [tuple(row) for row in rows.execute(rows.select(missing_vms).order_by(VM))]


def test_every_verb_touches_the_rows_of_one_engine_alone(url: str) -> None:
    with ExitStack() as opened:
        ours, theirs = (
            opened.enter_context(closing(StoreAccess(url, engine=engine, patience_seconds=30)))
            for engine in (OURS, THEIRS)
        )
        with theirs._transaction() as rows:
            rows.add_all(missing_vms, [{"vm": vm, "since": 1.0} for vm in ("v1", "v2", "v3")])
        with ours._transaction() as rows:
            assert held(rows) == []
            assert rows.change(missing_vms, VM == "v1", since=2.0) == rows.remove(missing_vms) == 0
            rows.put(missing_vms, {"vm": "v1"}, {"since": 3.0})
            rows.put(missing_vms, {"vm": "v1"}, {"since": 4.0})
            rows.add(missing_vms, {"vm": "v2", "since": 5.0})
            assert rows.change(missing_vms, since=6.0) == 2
            rows.remove_all(VM, ["v2", "v3"])
            assert held(rows) == [("v1", 6.0)]
        with theirs._transaction() as rows:
            assert held(rows) == [("v1", 1.0), ("v2", 1.0), ("v3", 1.0)]


def test_all_statements_are_made_by_these_verbs() -> None:
    """But for what concerns the store as a whole, and an alias, which names the engine itself."""
    whole = {"access.py", "backup.py", "schema.py"}
    made = re.compile(r"(?<![.\w])(?:select|insert|update|delete)\((?!open_steps)")
    files = [file for file in Path(store.__path__[0]).rglob("*.py") if file.name not in whole]
    assert len(files) > 10
    assert [file.name for file in files if made.search(file.read_text())] == []
    assert all("engine" in table.columns for table in metadata.tables.values() if table is not schema_version)


def test_an_intent_is_one_engines_alone_and_so_is_its_step(url: str) -> None:
    wanted = {"vm": "v", "cluster": "c", "source": None, "target": "h", "plan": "p1", "step": 1}
    with closing(Store(url, engine=OURS)) as ours, closing(Store(url, engine=THEIRS)) as theirs:
        intent = prepared(ours, **wanted, correlation_id="same")
        with pytest.raises(ImpossibleTransition, match=f"intent {intent.id} does not exist"):
            theirs.accept(intent.id)
        with pytest.raises(UserError):
            prepared(theirs, **wanted, correlation_id="same")
        theirs.fail(prepared(theirs, **wanted, correlation_id="another").id, "refused")
    with closing(HistoryStore(url, engine=THEIRS)) as history:
        history.record_plan("p1", "c", {"steps": [{}], "remaining": []})
        assert [one.plan for one in history.ended_steps()] == ["p1"]
        history.record_outcome(["another"], StepOutcome(0))
        assert history.ended_steps() == ()


def test_tables_that_another_made_are_seen_by_a_connection_that_found_none(url: str) -> None:
    """SQLite 3.26 answers some questions about tables from what the connection has read before."""
    with database(url) as late:
        assert schema.version(late) is None
        with database(url) as early:
            schema.make_tables(early)
        schema.make_tables(late)
    with database(url) as connection:
        versions = connection.exec_driver_sql("SELECT version FROM schema_version").scalars()
        assert [*versions] == [schema.VERSION]


@pytest.mark.parametrize(
    "said",
    [
        'connection to server at "10.0.0.1", port 5432 failed: Connection reset by peer',
        "could not receive data from server: Connection timed out",
        'connection to server at "10.0.0.1", port 5432 failed: No route to host',
        'connection to server at "10.0.0.1", port 5432 failed: Network is unreachable',
        "SSL SYSCALL error: EOF detected",
    ],
)
def test_a_network_that_ends_a_connection_is_a_server_that_does_not_answer(said: str) -> None:
    """In libpq's words, which has no code for it."""
    fault = find_server_fault(parse_url("postgresql://u@10.0.0.1/placement"), "", said)
    assert fault is not None
    assert "does not answer" in fault.what
