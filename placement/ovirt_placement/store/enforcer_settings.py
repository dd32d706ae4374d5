"""Remembers the settings with which the enforcer leads; where they have changed, that is an action as well.

They are in a file, and count once the process starts again: nothing else records its changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import not_

from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.leases import free
from ovirt_placement.store.schema import enforcer_settings, leases
from ovirt_placement.store.user_actions import Act, UserActionKind, record

#: Who edited the file is not known: it is the service's doing.
_LOGIN: Final = "ovirt-enforcer"
#: Where two lists take more characters, only the entries are named in which they differ.
_WHOLE: Final = 200
#: No more than these of each list.
_NAMED: Final = 10


class EnforcerSettingsStore(StoreAccess):
    """The settings of one engine's enforcer, in a database."""

    def record(self, epoch: int, settings: Mapping[str, Any]) -> None:
        """Write down the settings, by their names, of the process that leads in an epoch of the lease.

        What differs from those before is recorded as an action. It is the leader's: raises `LeaseLost`.
        """
        values = {"epoch": epoch, "settings": dict(settings)}
        with self._leading() as rows:
            before = rows.execute(rows.select(enforcer_settings)).one_or_none()
            if before is not None and (changes := differences(settings, "before", before.settings)):
                record(rows, Act(kind=UserActionKind.SETTINGS, login=_LOGIN, details=changes))
            rows.execute(rows.insert_or_update(enforcer_settings, values, values))

    def of_leader(self) -> Mapping[str, Any] | None:
        """Return the settings of the process that leads; None if none does, or if they are not known."""
        with self._reading() as rows:
            lease = rows.select(leases, leases.c.epoch).where(not_(free())).scalar_subquery()
            column = enforcer_settings.c.settings
            query = rows.select(enforcer_settings, column).where(enforcer_settings.c.epoch == lease)
            settings: Mapping[str, Any] | None = rows.execute(query).scalar_one_or_none()
            return settings


def differences(settings: Mapping[str, Any], word: str, others: Mapping[str, Any]) -> tuple[str, ...]:
    """What differs, such as "mode enforce, before observe", where `word` says when or where others hold.

    A setting that only one of them has is not set in the other.
    """
    names = sorted(settings.keys() | others.keys())
    differing = [name for name in names if settings.get(name) != others.get(name)]
    return tuple(f"{name} {_difference(settings.get(name), word, others.get(name))}" for name in differing)


def _difference(value: Any, word: str, other: Any) -> str:
    text = f"{_text(value)}, {word} {_text(other)}"
    if len(text) <= _WHOLE or not all(isinstance(one, (list, type(None))) for one in (value, other)):
        return text
    entries, others = ([*map(_text, one or ())] for one in (value, other))
    if sorted(entries) == sorted(others):
        return "the same entries in another order"
    return f"{_counted(entries, others)}, {word} {_counted(others, entries)}"


def _counted(entries: Sequence[str], others: Iterable[str]) -> str:
    """How many entries there are, with those that are not among the others."""
    known = {*others}
    alone = [entry for entry in entries if entry not in known]
    named = ", ".join(alone[:_NAMED])
    if len(alone) > _NAMED:
        named += f" and {len(alone) - _NAMED:,} more"
    return f"{len(entries):,} entries" + (f" (with {named})" if alone else "")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value or "empty"
    return "not set" if value is None else msgspec.json.encode(value).decode()
