"""The audit log of the page: one line for each log-in and each act, refused ones included."""

from __future__ import annotations

from typing import Final

from ovirt_service.audit import AuditLog

LOG: Final = AuditLog("ovirt_placement_web.audit", "[web] audit_log", in_log=True)


def note(engine: str, who: str, address: str, act: str, outcome: str, **more: str) -> None:
    """Write a line of JSON: who did what, from where, and what came of it; `more` says to what.

    It names the `engine`, which is empty where the page shows one alone.
    """
    facts = {"engine": engine, "who": who, "address": address, "act": act, "outcome": outcome, **more}
    LOG.write({name: fact for name, fact in facts.items() if fact or name in ("who", "address")})
