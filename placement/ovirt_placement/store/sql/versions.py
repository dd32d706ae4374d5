"""That a store was made, remembered apart from it, and the version of its tables."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, Connection, insert, inspect, select, text, update

from ovirt_placement.config import STATE_DIRECTORY
from ovirt_placement.store.sql.connections import marker_of
from ovirt_placement.store.sql.schema import metadata, schema_version
from ovirt_service import identity
from ovirt_service.files import digest_name

#: Bytes of the digest in the name of a PostgreSQL store's marker.
_NAME_SIZE = 8
#: In their order; the first makes version 2 of version 1. None may change once it stood in a release.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = ()
#: What this release reads and writes. A store with a higher one is left alone.
VERSION = 1 + len(MIGRATIONS)


class Marker:
    """The marker of one store; one that cannot be written is none."""

    def __init__(self, url: URL) -> None:
        self._file = _place(url)
        #: What this process has seen itself.
        self._seen = False

    @property
    def is_set(self) -> bool:
        """Whether the store was there before."""
        return self._seen or os.path.lexists(self._file)

    def set(self, *, writes: bool) -> None:
        """Remember that the store is there; a reader remembers it for itself alone."""
        self._seen = True
        try:
            if writes and not identity.is_others(self._file.parent):
                make_as_folder(self._file)
        except OSError:
            pass  # who may not write there has at least seen it


def make_as_folder(file: Path) -> None:
    """Make an empty file that owner and group of its folder may read and write as they may write there.

    A link in its place is not followed. Raises `OSError`, also if there is something already.
    """
    folder = file.parent.stat()
    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # who is not in that group keeps his own
            os.fchown(made, -1, folder.st_gid)
        os.fchmod(made, folder.st_mode & 0o660)
    finally:
        os.close(made)


def _place(url: URL) -> Path:
    if url.get_backend_name() == "sqlite":
        return marker_of(Path(url.database or ""))
    state = Path(os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or STATE_DIRECTORY)
    named = f"{url.host} {url.port} {url.database} {sorted(url.query.items())}"
    return state / f"store-{digest_name(named, _NAME_SIZE)}.made"


def version(connection: Connection) -> int | None:
    """Return the version of the tables; None if there are none."""
    # SQLite's `table_info`, which `inspect` asks, answers from what a connection remembers: 3.26 misses a
    # table that another process has made since. Reading from a table makes SQLite compare first.
    named = text("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'")
    sqlite = connection.dialect.name == "sqlite"
    if not (connection.scalar(named) if sqlite else inspect(connection).has_table(schema_version.name)):
        return None
    return int(connection.execute(select(schema_version.c.version)).scalar_one())


def make_or_upgrade(connection: Connection) -> None:
    """Make all tables, or take the steps that are missing, in a transaction that keeps others out."""
    found = version(connection)
    if found is None:
        metadata.create_all(connection, checkfirst=False)
        connection.execute(insert(schema_version).values(version=VERSION))
        return
    for migrate in MIGRATIONS[found - 1 :]:
        migrate(connection)
    if found < VERSION:
        connection.execute(update(schema_version).values(version=VERSION))
