"""What a process has open to know engines: a connection and a store each, while these are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from ovirt_placement.config import Config, EngineSettings, StoreSettings
from ovirt_placement.inventory.client.engine_state import EngineState
from ovirt_placement.inventory.published.publication import Publication
from ovirt_placement.lookups.index import with_more_pending
from ovirt_placement.model import Pending, Snapshot

#: What parent processes had open: to close it here would say good-bye in their name.
_inherited: list[OpenEngines] = []


class _Settings(NamedTuple):
    """What another engine, store or publication would differ in; several engines may share a store."""

    directory: Path
    engine: EngineSettings
    store: StoreSettings
    tagged: bool


class Opened:
    """What one engine's state is read and decoded with."""

    def __init__(self, config: Config) -> None:
        self.config = config
        #: What was decoded last, for all threads: under the lock.
        self.lock = threading.Lock()
        self.publication: Publication | None = None
        #: What is pending over it; the same object comes again, so that what it has indexed is kept.
        self._laid: tuple[Snapshot, tuple[Pending, ...], Snapshot] | None = None
        self.engine = EngineState(config)
        #: How many use it now; and whether it is closed once these are done.
        self.users = 0
        self.dropped = False

    def close(self) -> None:
        """Log out of the engine and close the store; what is under way is ended."""
        self.engine.close()

    def laid(self, snapshot: Snapshot, pending: tuple[Pending, ...]) -> Snapshot:
        """The snapshot with this on its way besides."""
        if not pending:
            return snapshot
        with self.lock:
            if self._laid is None or self._laid[0] is not snapshot or self._laid[1] != pending:
                self._laid = snapshot, pending, with_more_pending(snapshot, pending, like=snapshot)
            return self._laid[2]


class OpenEngines:
    """What is open: for the settings that are in use, and for those that were used last.

    Who goes on to use several settings in turn keeps them in use meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[_Settings, Opened] = {}

    def after_fork(self) -> Self:
        """What the child of a fork begins with: what its parent has decoded, and nothing open."""
        child = type(self)()
        _inherited.append(self)
        for settings, opened in self._opened.items():
            child._opened[settings] = own = Opened(opened.config)
            own.publication = opened.publication
        return child

    @contextmanager
    def using(self, config: Config) -> Iterator[Opened]:
        """Lend what is open for these settings; what nobody uses any more, and is for others, is closed."""
        settings = _Settings(config.inventory.directory, config.engine, config.store, config.ha.tagged)
        with self._lock:
            opened = self._opened.get(settings)
            if opened is None:
                opened = Opened(config)
                idle = [other for other, one in self._opened.items() if not one.users]
                closing = [self._opened.pop(other) for other in idle]
                self._opened[settings] = opened
            else:
                closing = []
            opened.users += 1
        for one in closing:
            one.close()
        try:
            yield opened
        finally:
            with self._lock:
                opened.users -= 1
                over = opened.dropped and not opened.users
            if over:
                opened.close()

    def close(self) -> None:
        """Close all, also what is in use: it is closed again when it is not any more."""
        with self._lock:
            closing, self._opened = list(self._opened.values()), {}
            for one in closing:
                one.dropped = True
        for one in closing:
            one.close()
