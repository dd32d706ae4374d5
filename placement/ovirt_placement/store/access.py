"""One process's access to the store: opened late, and again in the child of a fork, which is harmless."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        self._database = Database(url, patience_seconds=patience_seconds, create=create)
        self._process = os.getpid()

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[EngineRows]:
        if self._process != os.getpid():
            self._database = self._database.after_fork()
            self._process = os.getpid()
        with self._database.transaction() as connection:
            yield EngineRows(connection, self._engine)

    @contextmanager
    def _leading(self) -> Iterator[EngineRows]:
        """Begin a transaction that writes what only a leader may, where there is to be one."""
        with self._transaction() as rows:
            if self._epoch is not None:
                fence(rows, self._epoch())
            yield rows
