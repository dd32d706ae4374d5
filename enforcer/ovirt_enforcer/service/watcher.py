"""Who is shown what the daemon reads."""

from __future__ import annotations

from typing import Protocol

from ovirt_placement.model import Snapshot


class Watcher(Protocol):
    """Is shown whole readings of the engine, and handles its own failures."""

    def look(self, snapshot: Snapshot) -> None: ...
