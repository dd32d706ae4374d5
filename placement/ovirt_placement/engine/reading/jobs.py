"""Reads the engine's jobs: what it is still working on, which no event reports yet."""

from __future__ import annotations

from http import HTTPStatus

from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.parsing import xml
from ovirt_placement.engine.reading.requests import whole_answers

_NOT_FOR_THIS_USER = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN})


def is_working(connection: EngineConnection, correlation_id: str) -> bool:
    """Whether a command with this correlation id has begun and not ended.

    The engine makes a command's job before it waits for locks, validates and schedules, and shows the
    correlation id of none: it can only be searched for. Of a user who may not search jobs, nothing is known.
    Raises what else `EngineConnection.get` raises.
    """
    try:
        content = connection.get("/jobs", search=f"correlation_id={correlation_id}")
    except EngineFault as fault:
        if fault.code in _NOT_FOR_THIS_USER:
            return False
        raise
    with whole_answers(connection):
        return any(job.findtext("status") == "started" for job in xml.elements(content, "job"))
