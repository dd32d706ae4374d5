"""The audit log of the enforcer: each decision and migration."""

from __future__ import annotations

from typing import Any, Final

from ovirt_service.audit import AuditLog

#: Its lines go to the file that the configuration names, and never into the log of the service.
LOG: Final = AuditLog("ovirt_enforcer.audit", "[enforcer] audit_log", in_log=False)


def report(kind: str, sentence: str, **facts: Any) -> None:
    """Write a line: the kind of event, its facts (ids and names), and a sentence for people."""
    LOG.write({"kind": kind, **facts, "sentence": sentence})
