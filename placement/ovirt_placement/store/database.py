"""Opens the store's database, makes its tables, and says in one sentence why it cannot."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url, text

from ovirt_placement.store import ownership
from ovirt_placement.store.marker import Marker
from ovirt_placement.store.versions import VERSION, make_or_upgrade, version
from ovirt_service.errors import UserError

#: Any number will do, as long as it is always the same: two processes must not make the tables at once.
_POSTGRESQL_LOCK = 7_220_417

#: Much longer than the writing of every key that there can be takes.
_LONGEST_STATEMENT_SECONDS = 30

#: Device and inode.
_File = tuple[int, int] | None


class StoreAway(UserError):
    """The store is locked, absent or out of reach for now; to ask again later may help."""


class StoreUnmade(StoreAway):
    """The store does not exist yet: its first writer makes it."""


class StoreLost(StoreAway):
    """The store was there, and is not: what it held must not be forgotten in silence."""


class Database:
    """One process's way to the store. The tables are made and their version checked at first use."""

    def __init__(self, url: str, *, patience_seconds: float, create: bool) -> None:
        self._patience_seconds = patience_seconds
        self._create = create
        self._url = _parsed(url)
        self._engine = self._make_engine()
        self._marker = Marker(self._url)
        self._checked = False
        #: The file that connections are open to.
        self._file: _File = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The URL without its password, wherever that stands in it."""
        return _shown(self._url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Give a connection within a transaction that is committed at the end, or rolled back."""
        try:
            self._check_once()
            with self._engine.begin() as connection:
                yield connection
        except (exc.OperationalError, exc.TimeoutError) as error:
            self._checked = self._checked and not _lacks_table(error)
            raise StoreAway(f"store {self.name}: {_reason(error)}") from None
        except exc.DBAPIError as error:
            if _lacks_table(error):
                self._checked = False
            if error.connection_invalidated or _lacks_table(error):
                raise StoreAway(f"store {self.name}: {_reason(error)}") from None
            raise UserError(f"store {self.name}: {_reason(error)}") from None
        except UnicodeEncodeError as error:
            raise UserError(f"store {self.name}: {error.object!r} is no Unicode text") from None

    def after_fork(self) -> Database:
        """Give the child of a fork a database of its own; the parent's connections stay the parent's."""
        self._engine.dispose(close=False)
        url = self._url.render_as_string(hide_password=False)
        return Database(url, patience_seconds=self._patience_seconds, create=self._create)

    def close(self) -> None:
        self._engine.dispose()

    def begin_again(self) -> bool:
        """Make a store that is not there, though it was before; false if it is there.

        Raises `StoreAway` and `UserError` as `transaction` does.
        """
        try:
            with self.transaction():
                return False
        except StoreLost:
            pass
        try:
            self._marker.forget()
        except OSError as error:
            raise UserError(f"store {self.name}: {error.filename}: {error.strerror}") from None
        with self.transaction():
            return True

    def check_writable(self) -> None:
        """Raise `UserError` where SQLite cannot write for a reason that does not pass by itself."""
        if self._url.get_backend_name() != "sqlite":
            return
        try:
            with self.transaction() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
        except StoreLost:
            raise
        except StoreAway as error:
            if "locked" not in str(error):
                raise UserError(f"{error}: its file and folder must be writable for who runs this") from None

    def _make_engine(self) -> Engine:
        try:
            engine = create_engine(self._url, connect_args=self._connect_arguments(), pool_pre_ping=True)
        except ModuleNotFoundError as error:
            raise UserError(
                f"store {self.name}: {error}; PostgreSQL needs pip install 'ovirt-placement[postgresql]'"
            ) from None
        if self._url.get_backend_name() == "postgresql":
            event.listen(engine, "do_executemany", _execute_many)
        return engine

    def _connect_arguments(self) -> dict[str, Any]:
        if self._url.get_backend_name() == "sqlite":
            return {"timeout": self._patience_seconds}
        milliseconds = max(1, round(self._patience_seconds * 1000))
        # libpq counts in whole seconds and takes 2 for anything less. A client that waits for a server that
        # is cut off learns of it within 10 s.
        return {
            "connect_timeout": 2,
            "keepalives_idle": 4,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
            # A process that is stopped within a transaction does not block the rows that it locked.
            "options": f"-c lock_timeout={milliseconds} -c idle_in_transaction_session_timeout=5000"
            f" -c statement_timeout={_LONGEST_STATEMENT_SECONDS * 1000}",
        }

    def _check_once(self) -> None:
        with self._lock:
            present = self._present_file()
            if self._checked and present == self._file:
                return
            # A connection stays with a file that was replaced, by a restored one, say, or taken away.
            self._engine.dispose()
            self._checked = False
            self._check_place(present)
            self._check_version()
            self._marker.set(writes=self._create)
            self._file, self._checked = self._present_file(), True

    def _present_file(self) -> _File:
        """Identify the file that SQLite would open now; None if there is none."""
        if self._url.get_backend_name() != "sqlite":
            return None
        try:
            found = Path(self._url.database or "").stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreAway(f"store {self.name}: {error.strerror}") from None
        return found.st_dev, found.st_ino

    def _check_place(self, present: _File) -> None:
        """SQLite creates the file that is opened: not for a reader, and not where it cannot stand."""
        if self._url.get_backend_name() != "sqlite":
            return
        path = Path(self._url.database or "")
        if present is None and self._marker.is_set:
            raise self._lost()
        if not self._create and present is None:
            raise StoreUnmade(f"store {self.name}: no such file yet; the enforcer makes it when it runs")
        if not path.parent.is_dir():
            raise UserError(
                f"store {self.name}: no directory {path.parent}; make it, or set [store] url to another"
            )
        if present is None:
            try:
                ownership.make(path)
            except OSError as error:
                raise StoreAway(f"store {self.name}: {error.strerror}") from None

    def _check_version(self) -> None:
        """Make the tables this release's; a reader, who may not write, leaves that to the first who does."""
        with self._engine.connect() as connection:
            found = version(connection)
        if found == VERSION:
            return
        if found is not None and found > VERSION:
            raise UserError(
                f"store {self.name}: has schema version {found}, and this release knows {VERSION}:"
                " upgrade ovirt-placement on this machine, or set [store] url to another store"
            )
        if found is None and self._marker.is_set:
            raise self._lost()
        if self._create:
            self._make_or_upgrade()
        elif found is None:
            raise StoreUnmade(f"store {self.name}: has no tables yet")
        else:
            raise StoreAway(
                f"store {self.name}: has schema version {found} of an earlier release, and this one needs"
                f" {VERSION}: start ovirt-enforcer, which upgrades it and keeps what it holds"
            )

    def _lost(self) -> StoreLost:
        return StoreLost(
            f"store {self.name}: it was there, and is gone or empty: bring it back by"
            " ovirt-placement store restore, or begin with an empty one by ovirt-placement store init"
        )

    def _make_or_upgrade(self) -> None:
        """Make the tables once; the loser of a race finds them made."""
        sqlite = self._url.get_backend_name() == "sqlite"
        if sqlite:
            self._let_readers_and_a_writer_coexist()
        with self._engine.begin() as connection:
            if sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_LOCK})
            make_or_upgrade(connection)

    def _let_readers_and_a_writer_coexist(self) -> None:
        """Switch to the write-ahead log; the switch waits for nobody, so another process may win."""
        with (
            contextlib.suppress(exc.OperationalError),
            self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")


def sqlite_path(url: str) -> Path | None:
    """Return the file of an SQLite store; None if the store is none. Raises `UserError` for no URL."""
    parsed = _parsed(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        # There may be a password in it.
        raise UserError("[store] url: is no database URL; try sqlite:////PATH/store.db") from None
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise UserError(
            f'[store] url: "{_shown(parsed)}" is neither sqlite:////PATH nor postgresql://HOST/NAME'
        )
    if not Path(parsed.database).is_absolute():
        raise UserError(
            f'[store] url: "{_shown(parsed)}" is relative to wherever a command is run:'
            " write an absolute path, as in sqlite:////var/lib/ovirt-placement/store.db"
        )
    return parsed


def _shown(url: URL) -> str:
    query = {key: "***" if "pass" in key.lower() else value for key, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)


def _lacks_table(error: exc.DBAPIError | exc.TimeoutError) -> bool:
    """SQLite says so in words, PostgreSQL by the kind of the error."""
    original = getattr(error, "orig", None)
    return type(original).__name__ == "UndefinedTable" or "no such table" in str(original)


def _execute_many(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    """Write many rows; afterwards the server counts how long the transaction rests, as after one row.

    The driver sends many rows in a pipeline, whose end makes the server stop to count.
    """
    cursor.executemany(statement, parameters)
    cursor.connection.execute("SELECT 1")
    return True


def _reason(error: Exception) -> str:
    """Take the driver's first line, which says what is wrong; the rest is SQL and a link."""
    original = getattr(error, "orig", None) or error
    return str(original).strip().splitlines()[0]
