"""External events: what users add to the audit log, dismiss and bring back.

Source: reference/engine-api.md 6.3.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from .backend import Backend
from .entities import ADMIN, Caller, Event


class ExternalEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says; the REST face has checked that the mandatory fields are there."""

    origin: str
    #: normal, warning, error or alert.
    severity: str
    custom_id: int
    description: str
    cluster: str | None = None
    data_center: str | None = None
    host: str | None = None
    vm: str | None = None
    #: Seconds in which an event like this is logged only once.
    flood_rate: int = 0
    custom_data: str | None = None
    time: datetime | None = None


class EventCommands:
    """Commands on events; `add` and `remove` raise `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def add(self, event: ExternalEvent, *, caller: Caller = ADMIN) -> Event:
        """Log an external event; origin and custom id are unique for ever, dismissed ones included."""
        raise NotImplementedError

    def remove(self, event_id: int, *, caller: Caller = ADMIN) -> None:
        """Dismiss an event; raises `NotFound` for an unknown one."""
        raise NotImplementedError

    def undelete(self) -> None:
        """Show all dismissed events again."""
        raise NotImplementedError
