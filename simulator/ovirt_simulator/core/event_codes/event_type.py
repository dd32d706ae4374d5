"""One type of event, as the engine has it."""

from __future__ import annotations

from typing import NamedTuple


class EventType(NamedTuple):
    """What every event of one type has in common."""

    number: int
    #: normal, warning, error or alert.
    severity: str
    #: A format string over the names that the audit log puts in.
    text: str
    #: Within this time the same event is logged once.
    flood_seconds: int = 0
