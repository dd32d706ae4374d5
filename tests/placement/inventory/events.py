"""Builds events in one line."""

from __future__ import annotations

from typing import Any

from ovirt_placement.engine.events import EngineEvent


def event(number: int, code: int = 30, **fields: Any) -> EngineEvent:
    """An event of a code without meaning, unless a test says otherwise."""
    values: dict[str, Any] = {
        "id": number, "code": code, "severity": "normal", "time": 0.0, "description": "",
        "correlation_id": None, "vm": None, "host": None, "cluster": None, **fields,
    }  # fmt: skip
    return EngineEvent(**values)
