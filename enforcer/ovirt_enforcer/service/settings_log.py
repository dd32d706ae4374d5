"""Records with which settings this process leads: the history says when a limit or the mode was changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore, LeadingSettings

#: What may hold a password: addresses of notifications, and commands.
_UNRECORDED: Final = frozenset({"notifications", "maintenance"})


class SettingsLog:
    """The settings of this process while it leads."""

    def __init__(
        self, store: EnforcerSettingsStore, settings: EnforcerSettings, epoch: Callable[[], int]
    ) -> None:
        plain: Mapping[str, Any] = msgspec.json.decode(msgspec.json.encode(settings))
        self._settings = dict(_flat({name: plain[name] for name in plain if name not in _UNRECORDED}))
        self._store = store
        self._epoch = epoch
        #: The last epoch in which they were written down.
        self._recorded = 0

    def look(self) -> None:
        """Write them down once in each epoch; raises `StoreAway` and `LeaseLost`."""
        epoch = self._epoch()
        if epoch != self._recorded:
            self._store.record(LeadingSettings(epoch, self._settings))
            self._recorded = epoch


def _flat(settings: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting by its full name, such as `ha.repair` or `clusters.production`."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value
