"""How a store's database is connected to, by its URL: SQLite by a file, PostgreSQL by a server."""

import contextlib
import getpass
import grp
import os
import sqlite3  # noqa: F401 - root loads it before it becomes a user who may not read where Python is
import time
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import URL, Engine, create_engine, event, exc, make_url

from ovirt_service.errors import UserError
from ovirt_service.http.addresses import shown

#: Much longer than the writing of every key that there can be takes.
_LONGEST_STATEMENT_SECONDS = 30
#: How much longer an answer may take than a server that works lets a statement take.
_MORE_SECONDS = 2

#: The device and the inode of an SQLite store.
StoreFile = tuple[int, int] | None


def sqlite_path(url: str) -> Path | None:
    """Return the file of an SQLite store; None if the store is none. Raises `UserError` for no URL."""
    parsed = parse_url(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def parse_url(url: str) -> URL:
    """Raises `UserError` if no store can be there."""
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        # There may be a password in it.
        raise UserError("[store] url: is no database URL; try sqlite:////PATH/store.db") from None
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise UserError(
            f'[store] url: "{show_url(parsed)}" is neither sqlite:////PATH nor postgresql://HOST/NAME'
        )
    if not Path(parsed.database).is_absolute():
        raise UserError(
            f'[store] url: "{show_url(parsed)}" is relative to wherever a command is run:'
            " write an absolute path, as in sqlite:////var/lib/ovirt-placement/store.db"
        )
    return parsed


def show_url(url: URL) -> str:
    """An SQLite store by its file; a database of others by scheme, host and port."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database or ''}"
    if url.host:
        return shown(url.set(drivername=url.get_backend_name()).render_as_string())
    hosts = url.query.get("host", ())
    return f"{url.get_backend_name()}://{hosts if isinstance(hosts, str) else ','.join(hosts)}"


def make_engine(url: URL, patience_seconds: float) -> Engine:
    """Raises `UserError` if what speaks to such a database is not installed."""
    postgresql = url.get_backend_name() == "postgresql"
    try:
        engine = create_engine(
            url,
            connect_args=_connect_arguments(url, patience_seconds),
            pool_pre_ping=not postgresql,
            max_overflow=-1,
        )
    except ModuleNotFoundError as error:
        raise UserError(
            f"store {show_url(url)}: {error}; PostgreSQL needs pip install 'ovirt-placement[postgresql]'"
        ) from None
    if postgresql:
        event.listen(engine, "do_executemany", _execute_many)
        event.listen(engine, "do_connect", _connect)
        event.listen(engine, "checkout", partial(_check, patience_seconds))
    return engine


def _connect(dialect: Any, record: Any, arguments: Any, named: Any) -> Any:
    """Connect to a server that may be stopped at any moment: no answer is waited for without an end.

    The kernel of its machine keeps the connection open, so no other timeout ends the wait.
    """
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        longest_seconds: float = _LONGEST_STATEMENT_SECONDS + _MORE_SECONDS

        def wait(self, gen: Any, *more: Any, **options: Any) -> Any:
            return super().wait(self._bounded(gen), *more, **options)

        def _bounded(self, gen: Any) -> Generator[Any, Any, Any]:
            """Give up, and the connection with it, once the driver has waited for too long."""
            until = time.monotonic() + self.longest_seconds
            ready: Any = None
            while True:
                try:
                    awaited = gen.send(ready)
                except StopIteration as end:
                    return end.value
                ready = yield awaited
                if not ready and time.monotonic() > until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer within {self.longest_seconds:g} s")

    return Bounded.connect(*arguments, **named)


def _check(patience_seconds: float, connection: Any, record: Any, proxy: Any) -> None:
    """Find out in bounded time whether a connection from before still serves, as a pool's own ping does."""
    usual, connection.longest_seconds = connection.longest_seconds, max(1.0, patience_seconds)
    try:
        connection.set_autocommit(True)  # asked without a transaction, it takes one answer
        connection.execute("")
        connection.set_autocommit(False)
    except Exception as error:
        raise exc.DisconnectionError(str(error)) from error
    connection.longest_seconds = usual


def _connect_arguments(url: URL, patience_seconds: float) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": patience_seconds}
    milliseconds = max(1, round(patience_seconds * 1000))
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


def _execute_many(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    """Write many rows; afterwards the server counts how long the transaction rests, as after one row.

    The driver sends many rows in a pipeline, whose end makes the server stop to count.
    """
    cursor.executemany(statement, parameters)
    cursor.connection.execute("SELECT 1")
    return True


def let_readers_and_a_writer_coexist(engine: Engine) -> None:
    """Switch to the write-ahead log; the switch does not wait, so another process may win."""
    with (
        contextlib.suppress(exc.OperationalError),
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):
        connection.exec_driver_sql("PRAGMA journal_mode=WAL").close()


def lacks_table(error: exc.DBAPIError | exc.TimeoutError) -> bool:
    """SQLite says so in words, PostgreSQL by the kind of the error."""
    original = getattr(error, "orig", None)
    return type(original).__name__ == "UndefinedTable" or "no such table" in str(original)


def code_of(error: Exception) -> str:
    """PostgreSQL's code of what is wrong; empty where no server has given one."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


def reason_of(error: Exception) -> str:
    """Take the driver's first line, which says what is wrong; the rest is SQL and a link."""
    original = getattr(error, "orig", None) or error
    return str(original).strip().splitlines()[0]


# -- What is wrong with a store, and the command that helps: databases name the one at most.
RESTORE = "ovirt-placement store restore BACKUP"
INIT = "ovirt-placement store init"
#: What follows a store that cannot be used as it is.
BRING_BACK = f"bring it back by {RESTORE}, or begin with an empty one by {INIT}"

_DAMAGES = ("not a database", "malformed", "encrypted")
_REFUSALS = ("readonly", "unable to open", "disk I/O", "full", "ermission denied", "No space", "Read-only")
#: SQLite takes more than half of it for the smallest change, of which the first reader takes half.
_LEAST_FREE = 1 << 16


class Fault(NamedTuple):
    """What is wrong, and what to do about it, as two parts of a sentence."""

    what: str
    remedy: str


#: Of a database that is whole, and of rows that no release of ours, or a later one, has written.
UNREADABLE = Fault(
    "it holds what this release cannot read",
    f"{RESTORE} --replace brings back what it held; one of a later release needs that release",
)


def is_damage(reason: str) -> bool:
    """Whether SQLite says that what stands in the file is no store any more."""
    return any(word in reason for word in _DAMAGES)


def find_server_fault(url: URL, code: str, reason: str) -> Fault | None:
    """What keeps this user from a database of PostgreSQL, by its code and words; None if that is not known.

    Where it lets no client in, and where there is none, libpq has words alone. Source of the codes:
    PostgreSQL's manual, appendix A.
    """
    user, name = url.username or getpass.getuser(), url.database or url.username or getpass.getuser()
    known = (
        (
            "28",
            'authentication failed|pg_hba.conf|role "|no password supplied',
            "the server does not let this user in",
            "correct user and password in [store] url, or pg_hba.conf on the server",
        ),
        (
            "3D",
            'database "',
            "the server has no such database",
            f"createdb -O {user} {name} on the server makes it; or correct [store] url",
        ),
        (
            "25006",
            "read-only|in recovery|hot standby",
            "the server takes no changes, as a standby does",
            "in [store] url, name the server that does, or all of them with target_session_attrs=read-write",
        ),
        (
            "53100",
            "No space left",
            "no room is left on the server's disk",
            "make room there; df -h on the server shows where",
        ),
        (
            "53300",
            "too many clients|connection slots",
            "the server has no connection left",
            "raise max_connections of the server",
        ),
        (
            "42501",
            "",
            "what is there belongs to another user",
            f"psql -d {name} -c 'REASSIGN OWNED BY OWNER TO \"{user}\"' by a superuser gives it to this one",
        ),
        (
            "08|57P",
            (
                "onnection refused|No such file|timeout expired|translate host|closed the connection"
                "|reset by peer|timed out|No route|unreachable|EOF detected"
            ),
            "the server does not answer",
            "systemctl status postgresql on its machine shows whether it runs; [store] url says where it is",
        ),
    )
    for codes, words, what, remedy in known:
        said = [word for word in words.split("|") if word and word in reason]
        if code.startswith(tuple(codes.split("|"))) if code else said:
            return Fault(what, remedy)
    return None


def obstacle(path: Path, reason: str = "") -> Fault | None:
    """What keeps this user from the file, by what SQLite said, and by file, folder and file system now.

    None if nothing is known to: it is locked, say. Without a reason, what keeps from writing.
    """
    if reason and not any(word in reason for word in _REFUSALS):
        return None
    try:
        return find_file_system_fault(path, reason) or _closed(path)
    except OSError:
        return None


def find_file_system_fault(path: Path, reason: str = "") -> Fault | None:
    """What keeps everybody from writing it. Raises `OSError` if its folder cannot be looked at.

    What did not fit has left its room again, so that of a full one SQLite's word is taken.
    """
    place = os.statvfs(path.parent)
    if place.f_flag & os.ST_RDONLY:
        mounted = next(one for one in (path.parent, *path.parent.parents) if one.is_mount())
        return Fault("its file system is read-only", f"mount -o remount,rw {mounted}")
    if place.f_bavail * place.f_frsize < _LEAST_FREE or "disk is full" in reason:
        return Fault("no room is left on its file system", f"make room there; df -h {path.parent} shows it")
    return None


def _closed(path: Path) -> Fault | None:
    folder = path.parent
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        try:
            group = grp.getgrgid(folder.stat().st_gid).gr_name
        except KeyError:
            group = "ovirt-placement"
        user = getpass.getuser()
        remedy = f"usermod -aG {group} {user}, and log in again; or run this as root"
        return Fault(f"user {user} may not write in {folder}", remedy)
    files = (file for file in (*lying_at(path), marker_of(path)) if file.is_file() and not file.is_symlink())
    closed = [file for file in files if not os.access(file, os.R_OK | os.W_OK, effective_ids=True)]
    if not closed:
        return None
    names = " ".join(map(str, closed))
    if all(file.lstat().st_uid == os.geteuid() for file in closed):
        return Fault("its file may not be written", f"chmod u+rw {names}")
    # What a link leads to is left alone.
    remedy = f"chown -h --reference={folder} {names}"
    return Fault("its file belongs to another user than its folder", remedy)


def marker_of(path: Path) -> Path:
    """The marker of the SQLite store that stands here."""
    return path.with_name(f"{path.name}.made")


def remove_all(path: Path) -> None:
    """Remove an SQLite store and what belongs to it, if there is any of it. Raises `OSError`."""
    for file in lying_at(path):
        file.unlink()


def lying_at(path: Path) -> Iterator[Path]:
    """What lies in the place of an SQLite store and belongs to it, the store itself at last.

    Raises `OSError` if its folder cannot be looked at.
    """
    for ending in ("-wal", "-shm", "-journal", ""):
        file = path.with_name(path.name + ending)
        with contextlib.suppress(FileNotFoundError):
            file.lstat()
            yield file
