"""The audit log of the page: one line for each log-in and each act, refused ones included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ovirt_service.audit import AuditLog

LOG: Final = AuditLog("ovirt_placement_web.audit", "[web] audit_log", in_log=True)

_engine: ContextVar[str] = ContextVar("engine", default="")


@contextmanager
def of_engine(name: str) -> Iterator[None]:
    """Whose lines name this engine; empty where the page shows one alone."""
    token = _engine.set(name)
    try:
        yield
    finally:
        _engine.reset(token)


def note(who: str, address: str, act: str, outcome: str, **more: str) -> None:
    """Write a line of JSON: who did what, from where, and what came of it; `more` says to what."""
    facts = {"engine": _engine.get(), "who": who, "address": address, "act": act, "outcome": outcome, **more}
    LOG.write({name: fact for name, fact in facts.items() if fact or name in ("who", "address")})
