"""Moments as the engine writes them: ISO 8601 with milliseconds and offset."""

from __future__ import annotations

from datetime import datetime


def moment(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat(timespec="milliseconds")
