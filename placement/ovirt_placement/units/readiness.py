"""Decodes each new snapshot, and looks things up in it, when it is published and not when the engine asks."""

from __future__ import annotations

import contextlib
import math
import threading
import time

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.lookups.index import prepare, share
from ovirt_placement.model import Snapshot
from ovirt_service.entry import at_end
from ovirt_service.errors import UserError

#: So long after the last decision new snapshots are still made ready: placements come in bursts.
REST_SECONDS = 60.0
#: How often it is seen whether that time is over, or whether an inventory is there by now.
_LOOK_SECONDS = 1.0


class Readiness:
    """What one process decided on last, and the thread that makes ready what it will decide on next."""

    def __init__(self, config: Config | None = None) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._latest: Snapshot | None = None
        self._used_at = 0.0

    def used(self, snapshot: Snapshot) -> None:
        """Take note that a decision is made on this snapshot: the next ones will be asked for the same."""
        with self._lock:
            if self._latest is not None and self._latest is not snapshot:
                share(snapshot, like=self._latest)
            self._latest, self._used_at = snapshot, time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._follow, name="readiness", daemon=True)
                self._thread.start()
                at_end(self.rest)

    def rest(self) -> None:
        """Make nothing ready any more until the next decision."""
        self._used_at = -math.inf

    def _follow(self) -> None:
        # Whatever is wrong, the next decision meets it too, and is the one to say so.
        with contextlib.suppress(UserError):
            while time.monotonic() - self._used_at < REST_SECONDS:
                try:
                    published = inventory.wait_for_change(_LOOK_SECONDS, config=self._config)
                except inventory.NoService:
                    time.sleep(_LOOK_SECONDS)
                    continue
                if published:
                    self._make_ready(inventory.snapshot(config=self._config, max_age=math.inf))

    def _make_ready(self, newer: Snapshot) -> None:
        with self._lock:  # a decision on it waits, and does not do the same again
            if self._latest is not None:
                prepare(newer, like=self._latest)
            self._latest = newer
