"""Remembers for a moment which VMs we migrate: what the engine reports of them is no news."""

from __future__ import annotations

from collections.abc import Callable, Set

#: A VM that we migrated is not news for so long afterwards.
_SECONDS = 60.0


class OwnMigrations:
    """VMs that we migrate and our correlation ids, and until when they count, in seconds of the clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def note(self, *own: str) -> None:
        """Remember VMs or correlation ids, from now on."""
        for one in own:
            self._until[one] = self._clock() + _SECONDS

    def forget_old(self) -> None:
        """Drop those that count no longer."""
        self._until = {one: until for one, until in self._until.items() if until > self._clock()}

    @property
    def known(self) -> Set[str]:
        """All that is remembered."""
        return self._until.keys()
