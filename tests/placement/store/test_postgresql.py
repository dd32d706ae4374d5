"""A PostgreSQL server that hangs, or is not set up: what is said of it, and what helps."""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ovirt_placement.store.orders import ALL_CLUSTERS, PauseStore
from ovirt_placement.store.sql import connections
from ovirt_placement.store.sql.database import Database, StoreAway, StoreLater, StoreUnclear
from ovirt_service.errors import OutcomeUnknown, UserError
from tests.placement.databases import database
from tests.placement.postgres_server import USER, PostgresServer, own_folder, running
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
    with pytest.raises(UserError, match="no such moment") as refused, database.transaction() as connection:
        connection.exec_driver_sql(_REFUSED_LATE)
    assert not isinstance(refused.value, OutcomeUnknown)
    database.close()
    assert reasons(store) == ["before"]


OTHER = "services"


class Scene:
    """A server with a store in which somebody has paused everything."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.url = server.url
        self.pause()

    def pause(self) -> None:
        with closing(PauseStore(self.url, engine="e", patience_seconds=5.0)) as store:
            pause_with(store, "")
            assert store.pauses()

    def works(self) -> bool:
        try:
            self.pause()
        except StoreAway:
            return False
        return True

    def said(self) -> StoreAway:
        """What is wrong, as it is said of each try."""
        with pytest.raises(StoreAway) as complaint:
            self.pause()
        assert complaint.value.remedy
        assert complaint.value.remedy in str(complaint.value)
        assert "Traceback" not in str(complaint.value)
        return complaint.value

    def execute(self, *statements: str, name: str = "postgres") -> None:
        """Let a superuser do something, each in a transaction of its own."""
        for statement in statements:
            source = f"host={self.server.folder} user={USER} dbname={name}"
            subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", source, "-c", statement], check=True)

    def write(self, file: str, text: str) -> str:
        """Change one of the server's own files; what it held before."""
        path = self.server.folder / "data" / file
        before = path.read_text()
        path.write_text(text)
        self.server.reload()
        return before


def pause_with(store: PauseStore, reason: str) -> None:
    store.pause("c", cluster_name="blue", reason=reason, set_by="ada", seconds=None)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with own_folder() as folder:
        server = PostgresServer.made(folder)
        server.start()
        try:
            yield Scene(server)
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                server.stop()


def test_a_server_that_is_away(scene: Scene) -> None:
    scene.server.stop()
    assert "the server does not answer" in scene.said().what
    assert "systemctl status postgresql" in scene.said().remedy
    scene.server.start()
    scene.pause()


def test_a_user_whom_the_server_does_not_let_in(scene: Scene) -> None:
    right, scene.url = scene.url, scene.url.replace(USER, "nobody-known", 1)
    assert "does not let this user in" in scene.said().what
    assert "correct user and password in [store] url" in scene.said().remedy
    scene.url = right.replace(USER, f"{USER}:s3cret", 1)
    rules = scene.write("pg_hba.conf", f"local all {USER} scram-sha-256\n")
    eventually(lambda: "password authentication failed" in str(scene.said()), 30.0)
    assert "does not let this user in" in scene.said().what
    assert "s3cret" not in str(scene.said())
    scene.write("pg_hba.conf", rules)
    eventually(scene.works, 30.0)


def test_a_database_that_is_not_there(scene: Scene) -> None:
    scene.url = scene.url.replace("/postgres?", "/placement?")
    assert "no such database" in scene.said().what
    command = re.findall(r"createdb -O (\S+) (\S+) ", scene.said().remedy)
    assert command == [(USER, "placement")]
    scene.execute(f'CREATE DATABASE "{command[0][1]}" OWNER "{command[0][0]}"')
    scene.pause()


def test_a_server_that_takes_no_changes(scene: Scene) -> None:
    settings = scene.write("postgresql.auto.conf", "default_transaction_read_only = on\n")
    eventually(lambda: not scene.works(), 30.0)
    assert "takes no changes" in scene.said().what
    assert "target_session_attrs=read-write" in scene.said().remedy
    scene.write("postgresql.auto.conf", settings)
    eventually(scene.works, 30.0)


def test_tables_of_another_user(scene: Scene) -> None:
    scene.execute(f"CREATE ROLE {OTHER} LOGIN")
    scene.url = scene.url.replace(USER, OTHER, 1)
    found = scene.said()
    assert "belongs to another user" in found.what
    (statement,) = re.findall(r"-c '([^']*)'", found.remedy)
    # Who owned the tables was this server's first user, whose other things stay: a role of its own here.
    scene.execute("CREATE ROLE former", *_owned_by(scene, "former"))
    scene.execute(statement.replace("OWNER", "former"))
    scene.execute(f"GRANT ALL ON SCHEMA public TO {OTHER}")
    scene.pause()


def _owned_by(scene: Scene, role: str) -> Iterator[str]:
    with database(scene.server.url) as connection:
        tables = connection.exec_driver_sql(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).scalars()
        yield from [f'ALTER TABLE "{table}" OWNER TO {role}' for table in tables]


def test_a_store_of_a_later_release(scene: Scene) -> None:
    with database(scene.url) as connection:
        (version,) = connection.exec_driver_sql("SELECT version FROM schema_version").one()
        connection.exec_driver_sql("UPDATE schema_version SET version = 99")
    with pytest.raises(StoreLater) as later:
        scene.pause()
    assert "upgrade ovirt-placement" in later.value.remedy
    with database(scene.url) as connection:  # as the release that is upgraded to knows it
        connection.exec_driver_sql(f"UPDATE schema_version SET version = {version}")
    scene.pause()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("no file system can be mounted here: none can be full")
    folder = Path(tempfile.mkdtemp(prefix="full-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def test_a_full_disk_of_the_server(small_disk: Path, scene: Scene) -> None:
    space = small_disk / "space"
    space.mkdir()
    scene.server.own(space)
    scene.execute(f"CREATE TABLESPACE small LOCATION '{space}'", "ALTER TABLE pauses SET TABLESPACE small")
    filler = small_disk / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], check=False, stderr=subprocess.DEVNULL)

    def fill(rows: int) -> None:
        for number in range(rows):
            with closing(PauseStore(scene.url, engine=f"e{number}", patience_seconds=5.0)) as store:
                pause_with(store, "x" * 400)

    with pytest.raises(StoreAway) as full:
        fill(1000)
    assert "no room is left on the server's disk" in full.value.what
    assert "make room there" in full.value.remedy
    filler.unlink()
    fill(100)
