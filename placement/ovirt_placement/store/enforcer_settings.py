"""Remembers the settings with which the enforcer leads; where they have changed, that is an action as well.

They are in a file that anybody may edit, and count once the process starts again: nobody else records them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.rows import EngineRows
from ovirt_placement.store.schema import enforcer_settings
from ovirt_placement.store.user_actions import Act, UserActionKind, record

#: Who edited the file is not known: it is the service's doing.
_LOGIN: Final = "ovirt-enforcer"


class LeadingSettings(msgspec.Struct, frozen=True):
    """The settings of the process that leads in this epoch of the lease, each by its name."""

    epoch: int
    settings: Mapping[str, Any]


class EnforcerSettingsStore(StoreAccess):
    """The settings of one engine's enforcer, in a database."""

    def record(self, leading: LeadingSettings) -> None:
        """Write down the settings of who leads now; what differs from those before is recorded as an action.

        It is the leader's: raises `LeaseLost`.
        """
        values = {"epoch": leading.epoch, "settings": dict(leading.settings)}
        with self._leading() as rows:
            before = _last(rows)
            if before is not None and (changes := tuple(_changes(before.settings, leading.settings))):
                record(rows, Act(kind=UserActionKind.SETTINGS, login=_LOGIN, details=changes))
            rows.execute(rows.insert_or_update(enforcer_settings, values, values))

    def last(self) -> LeadingSettings | None:
        """Return the settings of who leads, or led last; None if they are not known."""
        with self._transaction() as rows:
            return _last(rows)


def _last(rows: EngineRows) -> LeadingSettings | None:
    row = rows.execute(rows.select(enforcer_settings)).one_or_none()
    return None if row is None else LeadingSettings(row.epoch, row.settings)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What differs, in words; a setting that only one of them has is not set in the other."""
    for name in sorted(before.keys() | after.keys()):
        was, value = before.get(name), after.get(name)
        if was != value:
            yield f"{name} {_text(value)}, before {_text(was)}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or "empty"
    return "not set" if value is None else msgspec.json.encode(value).decode()
