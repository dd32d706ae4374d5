"""An inventory service without an engine: it answers at the socket by whatever snapshot a test gives it."""

import asyncio
import math
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from ovirt_placement import config
from ovirt_placement.inventory.decision import Accepted
from ovirt_placement.inventory.publication import Moments, Publication, now
from ovirt_placement.inventory.service.attempts import Attempts, InventoryMetrics
from ovirt_placement.inventory.service.publisher import Publisher
from ovirt_placement.inventory.service.readers import Readers
from ovirt_placement.model import Snapshot
from ovirt_placement.units.decisions import Decider
from tests.kit.leaks import SERVED


class ServedInventory:
    """Answers from `publish` on, until `close`."""

    def __init__(self, file: Path, error: str | None = None) -> None:
        """The file is the configuration of those who ask. With an error, nothing newer can be read."""
        self._error = error
        self.config = config.load(file, {})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="served inventory", daemon=True)
        self._thread.start()
        self._run(self._begin())
        SERVED.add(self)

    def publish(self, snapshot: Snapshot, moments: Moments, *, same_story: bool = False) -> None:
        """Answer by this snapshot, true at these moments; in another story nothing was accepted before."""
        self._run(self._publish(snapshot, moments, same_story))

    def close(self) -> None:
        """Answer no more."""
        if self not in SERVED:
            return
        SERVED.remove(self)
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _begin(self) -> None:
        directory, metrics = self.config.inventory.directory, InventoryMetrics()
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "socket").unlink(missing_ok=True)
        self._publisher = Publisher(directory, lambda: None, metrics)
        tried = Attempts()
        tried.began, tried.error = math.inf, self._error
        self._readers = Readers(
            self._publisher,
            metrics,
            self.config,
            Decider,
            want=lambda question: None,
            awaited=lambda question: (tried,),
            knows=lambda question: True,
        )
        self._server = await self._readers.listen(directory)

    async def _publish(self, snapshot: Snapshot, moments: Moments, same_story: bool) -> None:
        if not same_story:
            self._readers.decisions.accepted = Accepted(self.config.inventory.expected_seconds)
        before, number = self._publisher.version, self._publisher.number
        if before is None or before.snapshot != snapshot:
            number = max(number + 1, int(now() * 1_000_000))
        self._publisher.put(Publication(number, moments, snapshot))
        self._publisher.has_read = True
        await self._readers.report()

    async def _end(self) -> None:
        self._server.close()
        self._readers.close()
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
