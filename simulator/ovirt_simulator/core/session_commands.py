"""Users' sessions, as far as the audit log reports them.

Source: the engine's CreateUserSessionCommand; it reports the same user's log-in once in five seconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode

_SILENCE = timedelta(seconds=5)


class SessionCommands:
    """Commands on sessions."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._reported: dict[str, datetime] = {}

    def begin(self, source: str, session: str, *, caller: Caller = ADMIN) -> None:
        """Log that a user has logged in: `source` is an address, `session` what the engine calls it."""
        with self._backend.lock:
            now, reported = self._backend.now, self._reported.get(caller.user)
            if reported is not None and now - reported < _SILENCE:
                return
            self._reported[caller.user] = now
            words = {"source": source, "session": session}
            self._backend.audit_log.log(EventCode.USER_VDC_LOGIN, caller, words=words)
