"""What the enforcer reads: the engine's state, and whether all is in it that placement keys refer to."""

from __future__ import annotations

from typing import Final

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.model import Snapshot

#: Without an inventory service a large engine is read page by page; who waits is a loop, and no person.
_PATIENCE_SECONDS: Final = 60.0


class StateReading:
    """Reads snapshots, one after another, and remembers how the last one was."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._detailed = True
        self._statistics_age: float | None = None

    @property
    def statistics_age_seconds(self) -> float | None:
        """How old the figures of CPU and memory use are that were read last; None if there were none."""
        return self._statistics_age

    def whole(self) -> Snapshot:
        """A snapshot whose reading begins now. Raises what `inventory.snapshot` raises, as does `latest`."""
        return self._read(max_age=0.0)

    def latest(self) -> Snapshot:
        """A snapshot as young as a decision needs it."""
        return self._read(max_age=None)

    def suffices(self, keyed: Snapshot) -> bool:
        """Whether the last snapshot, with these keys, has the disks, NICs and owners that they refer to.

        A service that has just started, or heard of such keys for the first time, publishes before it has
        read these.
        """
        return self._detailed or not referred(key.level for key in keyed.placement_keys)

    def _read(self, max_age: float | None) -> Snapshot:
        snapshot, published = inventory.known(
            config=self._config, max_age=max_age, deadline=_PATIENCE_SECONDS
        )
        self._detailed = published is None or published.details_age_seconds is not None
        self._statistics_age = 0.0 if published is None else published.statistics_age_seconds
        return snapshot
