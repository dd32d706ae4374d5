"""The audit log of the page: one line for each log-in and each act, refused ones included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import msgspec

from ovirt_placement.model.record import Record
from ovirt_service.audit import AuditLog

LOG: Final = AuditLog("ovirt_placement_web.audit", "[web] audit_log", in_log=True)


class Act(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Who did what, from where, to what, and what came of it."""

    who: str
    address: str
    act: str
    outcome: str
    on: str = ""
    #: The digest of the plan that was approved of.
    plan: str = ""
    correlation_id: str = ""


_engine: ContextVar[str] = ContextVar("engine", default="")


@contextmanager
def of_engine(name: str) -> Iterator[None]:
    """Whose lines name this engine; empty where the page shows one alone."""
    token = _engine.set(name)
    try:
        yield
    finally:
        _engine.reset(token)


def note(act: Act) -> None:
    """Write a line of JSON."""
    engine = {"engine": name} if (name := _engine.get()) else {}
    LOG.write({**engine, **msgspec.to_builtins(act)})
