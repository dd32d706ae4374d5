"""Drops what ended so long ago that nobody asks for it, now and then."""

from __future__ import annotations

import math
from collections.abc import Callable

from ovirt_enforcer.actions.migrate_vm.backoff import REACH_SECONDS
from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.store.intents import Store

#: For so long what was done is remembered at the least, and so often what is older is dropped.
_REMEMBERED_SECONDS = 30 * 24 * 3600.0
_EVERY_SECONDS = 3600.0


class Forgetting:
    """Cuts the history of intents off at its end."""

    def __init__(self, store: Store, settings: EnforcerSettings, clock: Callable[[], float]) -> None:
        self._store = store
        self._seconds = max(Gates.reach_seconds(settings), REACH_SECONDS, _REMEMBERED_SECONDS)
        self._clock = clock
        self._forgot_at = -math.inf

    def now_and_then(self) -> None:
        """Drop old intents, unless that was done within the hour."""
        if self._clock() >= self._forgot_at + _EVERY_SECONDS:
            self._forgot_at = self._clock()
            self._store.forget(older_than_seconds=self._seconds)
