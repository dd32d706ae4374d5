"""Records with which settings this process leads: the history says when a limit or the mode was changed."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_enforcer.recorded_settings import recorded_settings
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore


class SettingsLog:
    """The settings of this process while it leads."""

    def __init__(
        self, store: EnforcerSettingsStore, settings: EnforcerSettings, epoch: Callable[[], int]
    ) -> None:
        self._settings = recorded_settings(settings)
        self._store = store
        self._epoch = epoch
        #: The last epoch in which they were written down.
        self._recorded = 0

    def look(self) -> None:
        """Write them down once in each epoch; raises `StoreAway` and `LeaseLost`."""
        epoch = self._epoch()
        if epoch != self._recorded:
            self._store.record(epoch, self._settings)
            self._recorded = epoch
