"""Writes all that a store holds, of all engines, into one file, and brings it back into any database."""

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, select, text, update

from ovirt_placement.store.sql.access import EngineRows
from ovirt_placement.store.sql.database import Database, StoreLater, StoreLost, StoreUnmade
from ovirt_placement.store.sql.schema import VERSION, key_revision, metadata, schema_version, user_actions
from ovirt_placement.store.user_actions import Act, UserActionKind, record
from ovirt_service import files, identity
from ovirt_service.errors import UserError

_FORMAT: Final = 1
#: Much more than a month of a large engine.
_MOST_MIB: Final = 1024
#: Databases limit the parameters of one statement.
_AT_ONCE: Final = 500
#: Readers know keys by their revision: after a restoration none that they know may stand.
_REVISIONS: Final = range(2**30, 2**31 - 2**20)


class Backup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What such a file holds."""

    format: int
    #: The version of the tables.
    schema: int
    #: The rows of each table, by its name.
    tables: dict[str, list[dict[str, Any]]]


def write(database: Database, path: Path, folders: Iterable[Path] = ()) -> int:
    """Write what the store holds at this moment into a new file; how many rows, as `count_of` has them.

    Root reads it as the owner of the store's `folders`, and writes it as root. Raises `UserError` if there is
    such a file already, or it cannot be written: then nothing of it is left; and what a transaction raises.
    """
    rows, _, content = identity.answer_as_owner(folders, lambda: _content(database)).partition(b"\n")
    try:
        descriptor = identity.create(path)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:  # a part of a backup would pass for one
            identity.remove(path)
            raise
    except OSError as error:
        raise UserError(f"{path}: cannot write the backup: {error.strerror}") from None
    return int(rows)


def _content(database: Database) -> bytes:
    """The number of rows on a line, and what a backup holds."""
    with database.transaction() as connection:
        _hold_writes(connection)
        tables = {
            table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
            for table in _tables()
        }
    backup = Backup(_FORMAT, VERSION, tables)
    return f"{count_of(backup)}\n{json.dumps(msgspec.structs.asdict(backup))}".encode()


def read(path: Path) -> Backup:
    """Read such a file; raises `UserError` if it is none, or one that another release has written."""
    try:
        found = msgspec.convert(json.loads(files.read_named(path, "backup", _MOST_MIB).decode()), Backup)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise UserError(f"{path}: is no backup of a store: {error}") from None
    if (found.format, found.schema) != (_FORMAT, VERSION):
        raise UserError(
            f"{path}: was written with schema version {found.schema}, and this release has {VERSION}:"
            " restore it by the release that wrote it, and upgrade then"
        )
    if unknown := found.tables.keys() - {table.name for table in _tables()}:
        raise UserError(f"{path}: is no backup of a store: it has a table {sorted(unknown)[0]}")
    return found


def restore(database: Database, backup: Backup, by: tuple[str, Act], *, replace: bool) -> None:
    """Bring back what a file holds, all of it or nothing.

    `by` is the engine among whose records it is recorded, and who does it. A store that is damaged, or with
    `replace` of a later release, is put aside.

    Raises `UserError` if the store holds something that is not to be replaced, or a row is none.
    """
    check_rows(backup)
    with database.changed_alone():
        try:
            database.check_whole()
            with database.transaction() as connection:
                _hold_writes(connection)
                _check(database, connection, backup, replace=replace)
                _fill_tables(connection, backup, by)
        except (StoreLost, StoreUnmade, StoreLater) as error:
            if isinstance(error, StoreLater) and not (replace and database.is_file):
                raise
            database.begin_again(lambda connection: _fill_tables(connection, backup, by))


def _fill_tables(connection: Connection, backup: Backup, by: tuple[str, Act]) -> None:
    """Let the rows of a file be all that there are, and who brought them back."""
    for table in reversed(_tables()):
        connection.execute(delete(table))
    for table in _tables():
        _insert(connection, table, backup.tables.get(table.name, []))
    connection.execute(update(key_revision).values(revision=secrets.choice(_REVISIONS)))
    engine, act = by
    record(EngineRows(connection, engine), act)


def check(database: Database, backup: Backup, *, replace: bool) -> None:
    """Raise what `restore` would raise, and write nothing."""
    with database.transaction() as connection:
        _check(database, connection, backup, replace=replace)


def count(database: Database) -> int:
    """How many rows the store holds, but for the revision. Raises what a transaction raises."""
    with database.transaction() as connection:
        return sum(_count(connection, table) for table in _tables() if table is not key_revision)


def count_of(backup: Backup) -> int:
    """The same of what a file holds: no user would miss the revision."""
    return sum(len(rows) for name, rows in backup.tables.items() if name != key_revision.name)


def check_rows(backup: Backup) -> None:
    """Raise `UserError` for a row that has not the columns of its table."""
    for table in _tables():
        known = {column.name for column in table.columns}
        for row in backup.tables.get(table.name, []):
            if row.keys() != known:
                raise UserError(
                    f"the backup has a row in {table.name} that is none: {', '.join(sorted(row))}"
                )


def _check(database: Database, connection: Connection, backup: Backup, *, replace: bool) -> None:
    if not replace and any(_holds(connection, table) for table in _tables()):
        raise UserError(
            f"store {database.name}: is not empty: what it holds would be lost; --replace if that is meant"
        )
    check_rows(backup)


def _insert(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    # A file has the names of the database, which has kept some that the code has not.
    keys = {column.name: column.key for column in table.columns}
    for start in range(0, len(rows), _AT_ONCE):
        some = [{keys[name]: value for name, value in row.items()} for row in rows[start : start + _AT_ONCE]]
        connection.execute(insert(table), some)
    numbered = table.autoincrement_column
    if rows and numbered is not None and connection.dialect.name == "postgresql":
        # The numbers that were given out stand in the rows: the next one comes after them.
        highest = select(func.max(numbered)).scalar_subquery()
        connection.execute(
            select(func.setval(func.pg_get_serial_sequence(table.name, numbered.name), highest))
        )


def _hold_writes(connection: Connection) -> None:
    """See the store as it is at one moment, and let no other client write meanwhile."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        names = ", ".join(f'"{table.name}"' for table in _tables())
        connection.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))


def _holds(connection: Connection, table: Table) -> bool:
    """Whether it has rows that a user would miss; that a store was made again is none."""
    if table is user_actions:
        return _count(connection, table, user_actions.c.kind != UserActionKind.STORE_INIT.value) > 0
    return table is not key_revision and _count(connection, table) > 0


def _count(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one())


def _tables() -> list[Table]:
    """All but the version, which is that of the release."""
    return [table for table in metadata.sorted_tables if table is not schema_version]
