"""One process's access to the store: opened late, and again in the child of a fork, which is harmless."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ovirt_placement.store.database import Database
from ovirt_placement.store.fencing import fence
from ovirt_placement.store.rows import EngineRows


class StoreAccess:
    """What every part of the store is reached through.

    Every method of a part raises `StoreAway` if the database is locked for longer than the patience,
    absent or out of reach, and `UserError` if a person must set something right.
    """

    def __init__(
        self,
        url: str,
        *,
        engine: str,
        patience_seconds: float = 0.05,
        create: bool = True,
        epoch: Callable[[], int] | None = None,
    ) -> None:
        """Name the database, and the engine whose rows are meant.

        With `create` false nothing is written: a database that does not exist, or that an earlier release has
        left, is `StoreAway`. `epoch` gives the epoch of the lease in which that was read which is being
        written down: once that epoch is over, what only a leader may write raises `LeaseLost`.
        """
        self._epoch = epoch
        self._engine = engine
        self._open = partial(Database.opened, url, patience_seconds=patience_seconds, create=create)
        self._opening = threading.Lock()
        self._process = os.getpid()
        self._database: Database | None = self._open()

    def close(self) -> None:
        """Let go of the database; what is asked or written afterwards opens it again."""
        with self._opening:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def _opened(self) -> Database:
        with self._opening:
            if self._process != os.getpid():
                if self._database is not None:
                    self._database.leave_to_parent()
                self._process, self._database = os.getpid(), None
            if self._database is None:
                self._database = self._open()
            return self._database

    @contextmanager
    def _transaction(self) -> Iterator[EngineRows]:
        with self._opened().transaction() as connection:
            yield EngineRows(connection, self._engine)

    @contextmanager
    def reads_together(self) -> Iterator[None]:
        """Let this thread's reads of all parts that were opened alike share a transaction: see `Database`."""
        with self._opened().reads_together():
            yield

    @contextmanager
    def _reading(self) -> Iterator[EngineRows]:
        """Read, and write nothing."""
        with self._opened().reading() as connection:
            yield EngineRows(connection, self._engine)

    @contextmanager
    def _leading(self) -> Iterator[EngineRows]:
        """Begin a transaction that writes what only a leader may, where there is to be one."""
        with self._transaction() as rows:
            if self._epoch is not None:
                fence(rows, self._epoch())
            yield rows
