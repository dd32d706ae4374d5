"""Thousands of stores are made and opened in one process: what is the same of all of them is worked out once.

What is sent to a database stays what production sends, in the same order and transactions.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import sqlalchemy


class Stores:
    """What makes an SQLite store's tables, and the dialect and statements of each kind of database."""

    def __init__(self) -> None:
        self._tables: list[str] = []
        self._dialects: dict[str, tuple[Any, Any]] = {}

    @pytest.hookimpl
    def pytest_collection_finish(self) -> None:
        """Stand in for SQLAlchemy, if the tests have loaded the store at all."""
        database, versions = (
            sys.modules.get(f"ovirt_placement.store.sql.{name}") for name in ("database", "versions")
        )
        if database is None or versions is None:
            return
        from sqlalchemy import create_mock_engine
        from sqlalchemy.dialects import sqlite

        metadata: sqlalchemy.MetaData = versions.metadata

        def note(statement: Any, *_: Any, **__: Any) -> None:
            self._tables.append(str(statement.compile(dialect=sqlite.dialect())))

        metadata.create_all(create_mock_engine("sqlite://", note), checkfirst=False)
        create_all = metadata.create_all

        def create_tables(connection: sqlalchemy.Connection, **options: Any) -> None:
            if connection.dialect.name != "sqlite":
                create_all(connection, **options)
                return
            cursor = connection.connection.cursor()
            for statement in self._tables:
                cursor.execute(statement)
            cursor.close()

        metadata.create_all = create_tables  # type: ignore[method-assign, assignment]
        database.create_engine = self._engine  # type: ignore[attr-defined]

    def _engine(self, url: sqlalchemy.URL, **options: Any) -> sqlalchemy.Engine:
        """A new engine with the dialect, and so the statements, of the first for such a database."""
        from sqlalchemy import create_engine

        made = create_engine(url, **options)
        first: Any = (made.dialect, made._compiled_cache)
        made.dialect, made._compiled_cache = self._dialects.setdefault(url.get_backend_name(), first)
        return made
