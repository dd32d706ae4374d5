"""Opens the store's database, makes its tables, and says in one sentence why it cannot."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import msgspec
from sqlalchemy import Connection, Engine, NullPool, create_engine, exc

from ovirt_placement.store.sql.connections import (
    BRING_BACK,
    RESTORE,
    UNREADABLE,
    Fault,
    StoreFile,
    code_of,
    find_server_fault,
    is_damage,
    lacks_table,
    let_readers_and_a_writer_coexist,
    lying_at,
    make_engine,
    obstacle,
    parse_url,
    reason_of,
    remove_all,
    show_url,
    sqlite_path,
)
from ovirt_placement.store.sql.schema import VERSION, Marker, make_tables, version
from ovirt_service import identity
from ovirt_service.errors import OutcomeUnknown, UserError
from ovirt_service.files import held_alone, make_as_folder

#: Any number will do, as long as it is always the same: two processes must not make the tables at once.
_POSTGRESQL_LOCK = 7_220_417

_MAY_BE_THERE = "what was to be written may be there, or not: look before you try again"

_Result = TypeVar("_Result")
#: What is open in this process.
_opened: WeakValueDictionary[tuple[str, float, bool], Database] = WeakValueDictionary()
_opening = threading.Lock()


def _forked() -> None:
    """In the child of a fork: the parent's connections stay the parent's."""
    global _opening
    _opening = threading.Lock()
    for database in _opened.values():
        database.leave_to_parent()


os.register_at_fork(after_in_child=_forked)


class StoreAway(UserError):
    """The store is locked, absent or out of reach for now; to ask again later may help."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(f"{text}: {remedy}" if remedy else text)
        #: What is wrong, and what helps, where that is known.
        self.what, self.remedy = text, remedy


class StoreUnmade(StoreAway):
    """The store does not exist yet: its first writer makes it."""


class StoreLost(StoreAway):
    """The store was there, and is not, or is damaged: what it held must not be forgotten in silence."""


class StoreLater(StoreAway):
    """A later release has made the store its own."""


class StoreUnclear(StoreAway, OutcomeUnknown):
    """The store did not answer when it was asked to commit."""


class Database:
    """One process's way to the store. The tables are made and their version checked at first use.

    Those who open it alike share it, with its connections, until the last of them closes it.
    """

    @classmethod
    def opened(cls, url: str, *, patience_seconds: float, create: bool) -> Database:
        """Open it, or share what is open already; to be closed once by each who opens it."""
        alike = url, patience_seconds, create
        with _opening:
            database = _opened.get(alike)
            if database is None:
                database = _opened[alike] = cls(url, patience_seconds=patience_seconds, create=create)
            database._users += 1
            return database

    def __init__(self, url: str, *, patience_seconds: float, create: bool) -> None:
        self._users = 0
        self._create = create
        self._url = parse_url(url)
        self._engine = make_engine(self._url, patience_seconds)
        #: The file of an SQLite store; None of any other.
        self._path = sqlite_path(url)
        self._marker = Marker(self._url)
        self._checked = False
        #: The file that connections are open to.
        self._file: StoreFile = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The URL without its password, wherever that stands in it."""
        return show_url(self._url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Give a connection within a transaction that is committed at the end, or rolled back."""
        with self._failing():
            self._check_once()
            with self._begun(self._engine) as connection:
                yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection to read by."""
        with self._failing():
            self._check_once()
            with self._engine.connect() as connection:
                if self._path is None:  # whose transaction would take two answers more
                    connection.execution_options(isolation_level="AUTOCOMMIT")
                yield connection

    @contextmanager
    def _begun(self, engine: Engine) -> Iterator[Connection]:
        """Begin a transaction that is committed at the end; raises `StoreUnclear` if it may be or not."""
        with engine.connect() as connection, connection.begin() as transaction:
            yield connection
            try:
                transaction.commit()
            except exc.DBAPIError as error:
                # A file is written or not; a server that was asked and has not answered may yet do it.
                answered = code_of(error) and not code_of(error).startswith(("08", "57P"))
                if self._path is None and not answered:
                    raise StoreUnclear(f"store {self.name}: {reason_of(error)}", _MAY_BE_THERE) from None
                raise

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            self._checked = self._checked and not lacks_table(error)
            raise self._complaint(error) from None
        except UnicodeEncodeError as error:
            raise UserError(f"store {self.name}: {error.object!r} is no Unicode text") from None
        except UnicodeDecodeError as error:  # of SQLite's own words: what it quotes is no text any more
            raise self._damaged(str(error)) from None
        except (msgspec.ValidationError, json.JSONDecodeError) as error:
            raise self._away(str(error), UNREADABLE) from None

    def leave_to_parent(self) -> None:
        """Go on with connections of one's own; what a thread of the parent held is held by none here."""
        self._engine.dispose(close=False)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close its connections, unless others have opened it as well."""
        with _opening:
            self._users -= 1
            if self._users > 0:
                return
            for alike in [alike for alike, database in _opened.items() if database is self]:
                del _opened[alike]
        self._engine.dispose()

    @property
    def is_file(self) -> bool:
        return self._path is not None

    def check_whole(self) -> None:
        """Read all of an SQLite store. Raises `StoreLost` if it is damaged, and as `transaction` does."""
        if self._path is None:
            return
        with self.transaction() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if found != "ok":
            raise self._damaged(str(found).splitlines()[0])

    @contextmanager
    def changed_alone(self) -> Iterator[None]:
        """Keep two from making an SQLite store again at once, each with the other's file.

        Raises `UserError` if another process does so now, from a look at it until it is made.
        """
        busy = f"store {self.name}: another command makes or restores it now; wait for its end"
        with held_alone(self._path.parent, busy) if self._path else nullcontext():
            yield

    def begin_again(self, fill: Callable[[Connection], _Result]) -> _Result:
        """Make a new store with what `fill` writes, all of it or nothing; return what that returns.

        What stands in the place of an SQLite store, damaged or whole, is put aside, under its name with the
        date. To be called within `changed_alone`. Raises as `transaction` does.
        """
        with self._failing():
            found = self._made_again(self._path, fill) if self._path else self._made(self._engine, fill)
        self._marker.set(writes=True)
        self._checked = False
        return found

    def _made_again(self, path: Path, fill: Callable[[Connection], _Result]) -> _Result:
        """Make a file of its own, and let it take the place when it is whole."""
        self._check_folder(path)
        new = path.with_name(f"{path.name}.new")
        aside = path.with_name(f"{path.name}.{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%fZ}")
        engine = create_engine(self._url.set(database=str(new)), poolclass=NullPool)
        try:
            remove_all(new)  # what was killed has left it
            try:
                make_as_folder(new)
                found = self._made(engine, fill)
                self._engine.dispose()
                for file in list(lying_at(path)):
                    file.rename(f"{aside}{file.name.removeprefix(path.name)}")
                new.rename(path)
            finally:
                remove_all(new)  # a part takes the room that others need
        except OSError as error:
            raise self._closed(path, error) from None
        return found

    def _made(self, engine: Engine, fill: Callable[[Connection], _Result]) -> _Result:
        with self._alone(engine) as connection:
            make_tables(connection)
            return fill(connection)

    def _complaint(self, error: exc.DBAPIError | exc.TimeoutError) -> UserError:
        reason = reason_of(error)
        if self._path is None:
            fault = find_server_fault(self._url, code_of(error), reason)
        elif is_damage(reason):
            return self._damaged(reason)
        else:
            fault = UNREADABLE if "decode" in reason else obstacle(self._path, reason)
        passes = isinstance(error, exc.OperationalError | exc.TimeoutError) or error.connection_invalidated
        if fault is not None or passes or lacks_table(error):
            return self._away(reason, fault)
        return UserError(f"store {self.name}: {reason}")

    def _away(self, reason: str, fault: Fault | None) -> StoreAway:
        what = f"store {self.name}: {reason}"
        return StoreAway(what) if fault is None else StoreAway(f"{what}: {fault.what}", fault.remedy)

    def _damaged(self, reason: str) -> StoreLost:
        return StoreLost(f"store {self.name}: is damaged ({reason})", f"{BRING_BACK}; the file is put aside")

    def check_writable(self) -> None:
        """Raise `UserError` where SQLite cannot write for a reason that does not pass by itself."""
        if self._path is None:
            return
        try:
            with self.transaction() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
        except (StoreLost, StoreLater):
            raise
        except StoreAway as error:
            if "is locked" not in error.what:
                helps = error.remedy or "its file and folder must be writable for who runs this"
                raise UserError(f"{error.what}: {helps}") from None

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

    def _present_file(self) -> StoreFile:
        """Identify the file that SQLite would open now; None if there is none."""
        path = self._path
        if path is None:
            return None
        if identity.is_others(path.parent):
            raise UserError(f"store {self.name}: root opens none in a folder that others may write")
        found = None
        try:
            for file in lying_at(path):
                present = file.lstat()
                if not stat.S_ISREG(present.st_mode):  # SQLite would wait for who writes to a FIFO
                    what = f"store {self.name}: {file} is no regular file"
                    raise StoreAway(what, f"rm -r {file} removes it")
                if file == path:
                    found = present.st_dev, present.st_ino
        except OSError as error:
            raise self._closed(path, error) from None
        return found

    def _check_place(self, present: StoreFile) -> None:
        """SQLite creates the file that is opened: not for a reader, and not where it cannot stand."""
        path = self._path
        if path is None or present is not None:
            return
        if self._marker.is_set:
            raise self._lost()
        if not self._create:
            raise StoreUnmade(f"store {self.name}: no such file yet; the enforcer makes it when it runs")
        self._check_folder(path)
        try:
            make_as_folder(path)
        except FileExistsError:
            pass  # another process has been faster
        except OSError as error:
            raise self._closed(path, error) from None

    def _check_folder(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise UserError(
                f"store {self.name}: no directory {path.parent}; make it, or set [store] url to another"
            )

    def _check_version(self) -> None:
        """Make the tables this release's; a reader, who may not write, leaves that to the first who does."""
        with self._engine.connect() as connection:
            found = version(connection)
        if found == VERSION:
            return
        if found is not None:
            upgrade = "upgrade ovirt-placement on this machine, or set [store] url to another store"
            aside = f", or put it aside and bring one of this release back by {RESTORE} --replace"
            raise StoreLater(
                f"store {self.name}: has schema version {found}, and this release knows {VERSION}",
                upgrade if self._path is None else upgrade + aside,
            )
        if self._marker.is_set:
            raise self._lost()
        if not self._create:
            raise StoreUnmade(f"store {self.name}: has no tables yet")
        with self._alone(self._engine) as connection:
            make_tables(connection)

    def _closed(self, path: Path, error: OSError) -> StoreAway:
        return self._away(str(error.strerror), obstacle(path, str(error.strerror)))

    def _lost(self) -> StoreLost:
        return StoreLost(f"store {self.name}: it was there, and is gone or empty", BRING_BACK)

    @contextmanager
    def _alone(self, engine: Engine) -> Iterator[Connection]:
        """Begin a transaction to make tables in, while no other process does: the loser finds them made."""
        if self._path is not None:
            let_readers_and_a_writer_coexist(engine)
            first = "BEGIN IMMEDIATE"
        else:
            first = f"SELECT pg_advisory_xact_lock({_POSTGRESQL_LOCK})"
        with self._begun(engine) as connection:
            connection.exec_driver_sql(first)
            yield connection
