"""Databases that tests use as a store's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy

from tests.placement.postgres_server import running


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of a real PostgreSQL server, for as long as a test needs one."""
    with running() as server:
        yield server.url


def database(url: str) -> Any:
    """Open the database of a store, with an engine of the test's own."""
    engine = sqlalchemy.create_engine(
        url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sqlalchemy.NullPool
    )
    return engine.begin()


def set_clock(url: str, seconds: float) -> None:
    """Let the database's clock jump: what it wrote before is so much older then, or younger."""
    with database(url) as connection:
        connection.exec_driver_sql(f"UPDATE leases SET expires = expires - {seconds}")
