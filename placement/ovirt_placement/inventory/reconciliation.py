"""When to read the engine as a whole, though events tell what changes: pure, told what was read and when."""

from __future__ import annotations

from enum import Enum, auto

from ovirt_placement.config import InventorySettings


class Scope(Enum):
    """How much one larger reading takes in."""

    WHOLE = auto()
    HOSTS = auto()  # memory and CPU, of which no event tells
    STATISTICS = auto()


_NEVER = float("-inf")
#: How long to wait for the first demand before looking again.
_IDLE_SECONDS = 60.0


class Reconciliation:
    """The larger readings, each at its own interval, and sooner when one is demanded."""

    def __init__(self, settings: InventorySettings) -> None:
        self._intervals = {
            Scope.WHOLE: settings.vms_interval_seconds,
            Scope.HOSTS: settings.hosts_interval_seconds,
            Scope.STATISTICS: settings.statistics_interval_seconds,
        }
        #: When the last successful reading of each scope began.
        self._began = dict.fromkeys(Scope, _NEVER)
        self._demanded = _NEVER

    def demand(self, not_before: float) -> bool:
        """Ask for a reading of everything that begins at this moment or later; false if it was asked for."""
        if not_before <= self._demanded:
            return False
        self._demanded = not_before
        return True

    def next_reading(self, now: float, *, statistics: bool) -> Scope | None:
        """Say what to read now, the most needed first; nothing before the first demand."""
        if self._demanded > self._began[Scope.WHOLE]:
            return Scope.WHOLE
        due = self._due(statistics)
        return next((scope for scope in Scope if scope in due and due[scope] <= now), None)

    def done(self, scope: Scope, began: float) -> None:
        """Take note of a reading that was successful; its interval counts from its beginning."""
        self._began[scope] = began
        if scope is Scope.WHOLE:
            self._began[Scope.HOSTS] = began

    def pause(self, now: float, *, statistics: bool) -> float:
        """Say for how many seconds nothing is due unless it is demanded."""
        if self.next_reading(now, statistics=statistics) is not None:
            return 0.0
        return max(0.0, min(self._due(statistics).values(), default=now + _IDLE_SECONDS) - now)

    def _due(self, statistics: bool) -> dict[Scope, float]:
        if self._began[Scope.WHOLE] == _NEVER:
            return {}
        return {
            scope: began + self._intervals[scope]
            for scope, began in self._began.items()
            if statistics or scope is not Scope.STATISTICS
        }
