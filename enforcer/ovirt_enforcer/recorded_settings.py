"""The settings that the store remembers, each by its full name, such as `ha.repair` or `clusters.red`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ovirt_enforcer.settings import EnforcerSettings

#: What may hold a password: addresses of notifications, and commands.
_UNRECORDED: Final = frozenset({"notifications", "maintenance"})


def recorded_settings(settings: EnforcerSettings) -> dict[str, Any]:
    """The same in plain values, as they come back from a database."""
    plain: Mapping[str, Any] = msgspec.json.decode(msgspec.json.encode(settings))
    return dict(_flat({name: plain[name] for name in plain if name not in _UNRECORDED}))


def _flat(settings: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value
