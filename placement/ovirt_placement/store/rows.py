"""One engine's rows within a transaction: those of the others are neither seen nor touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Delete,
    Executable,
    Insert,
    Select,
    Table,
    Update,
    delete,
    insert,
    select,
    update,
)

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

    ReturningInsert = postgresql.Insert | sqlite.Insert

#: Databases limit the parameters of one statement.
_AT_ONCE = 500


class EngineRows:
    """Where every statement of a store begins, so that none forgets which engine it is about."""

    def __init__(self, connection: Connection, engine: str) -> None:
        self._connection = connection
        self.engine = engine

    def select(self, table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
        """Select these columns, or all but the engine's name."""
        return select(*(columns or without_engine(table))).where(table.c.engine == self.engine)

    def insert(self, table: Table) -> Insert:
        return insert(table).values(engine=self.engine)

    def update(self, table: Table) -> Update:
        return update(table).where(table.c.engine == self.engine)

    def delete(self, table: Table) -> Delete:
        return delete(table).where(table.c.engine == self.engine)

    def insert_or_update(
        self,
        table: Table,
        values: Mapping[str, Any],
        changes: Mapping[str, Any],
        where: ColumnElement[bool] | None = None,
    ) -> ReturningInsert:
        """Insert a row, or make these changes of the one that has its key, if it meets the condition."""
        statement = _insert(self._connection, table).values(engine=self.engine, **values)
        return statement.on_conflict_do_update(index_elements=table.primary_key, set_=changes, where=where)

    def delete_of_vms(self, table: Table, vms: Sequence[str]) -> None:
        """Delete the rows of these VMs, however many they are."""
        for start in range(0, len(vms), _AT_ONCE):
            self.execute(self.delete(table).where(table.c.vm.in_(vms[start : start + _AT_ONCE])))

    def execute(
        self, statement: Executable, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[Any]:
        return self._connection.execute(statement, values)


def without_engine(table: Table) -> tuple[ColumnElement[Any], ...]:
    """List the columns of a table but for the engine's name, which the caller knows.

    A row has them by their keys, also where the database has kept an earlier name.
    """
    return tuple(
        column if column.key == column.name else column.label(column.key)
        for column in table.columns
        if column.name != "engine"
    )


def _insert(connection: Connection, table: Table) -> ReturningInsert:
    """SQL has no word for what follows a conflict that both databases know, and SQLAlchemy none for any.

    A dialect takes long to load, and the one that is connected to is loaded.
    """
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)
