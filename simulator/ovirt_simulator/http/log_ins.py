"""Reports log-ins to the engine: with the first request of a token, and with every one that has none.

The engine begins a session when a token first comes to its API, not when the single sign-on gives it away.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode

from werkzeug import Request

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller


class Sessions:
    """The sessions that have begun."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._begun: set[str] = set()

    def note(self, request: Request, user_name: str) -> None:
        """Log a log-in, unless the request belongs to a session that has begun."""
        authorization = request.authorization
        token = "" if authorization is None else authorization.token or ""
        session = b64encode(hashlib.sha512(token.encode()).digest()).decode()
        if token and session in self._begun:
            return
        self._begun.add(session)
        caller = Caller(user=f"{user_name}-authz")
        self._engine.events.log_in(request.remote_addr or "", session, caller=caller)
