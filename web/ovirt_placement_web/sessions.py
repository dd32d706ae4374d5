"""Sessions of people: a browser has a random cookie, and the engine's token never leaves memory."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ovirt_placement.engine.reading.rights import Rights

#: Of more sessions one ends of the user who has most, the one that was idle longest: memory is bounded,
#: however often users log in, and none of them logs another out.
_MOST_SESSIONS = 10_000
Clock = Callable[[], float]


@dataclass(eq=False)
class Session:
    """One log-in. Its token is the engine's, and is shown nowhere."""

    rights: Rights
    csrf: str
    token: str = field(repr=False)
    used_at: float
    #: When the engine was asked last what the person may do.
    asked_at: float
    ended: bool = False
    _streams: set[asyncio.Event] = field(default_factory=set, repr=False)

    def change(self, rights: Rights) -> None:
        """Take what the engine says now that the person may do; for the loop's thread."""
        self.rights = rights
        self.wake()

    def wake(self) -> None:
        for event in self._streams:
            event.set()

    @contextmanager
    def wakes(self, event: asyncio.Event) -> Iterator[None]:
        """Set this event when the session ends, or its rights change; in the loop's thread."""
        self._streams.add(event)
        try:
            yield
        finally:
            self._streams.discard(event)

    def admits(self, csrf: str) -> bool:
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


class Sessions:
    """All sessions, found by the digest of what the cookie says."""

    def __init__(self, idle_seconds: float, clock: Clock = time.monotonic) -> None:
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[bytes, Session] = {}

    def begin(self, rights: Rights, token: str) -> tuple[str, Session]:
        """A new session, and what its cookie is to say: 256 random bits."""
        cookie, now = secrets.token_urlsafe(32), self._clock()
        session = Session(rights, secrets.token_urlsafe(32), token, now, now)
        with self._lock:
            self._sweep(now)
            while len(self._sessions) >= _MOST_SESSIONS:
                users = Counter(one.rights.user_id for one in self._sessions.values())
                ((most, _),) = users.most_common(1)
                of_user = {key: one for key, one in self._sessions.items() if one.rights.user_id == most}
                oldest = self._sessions.pop(min(of_user, key=lambda key: of_user[key].used_at))
                oldest.ended = True
                oldest.wake()
            self._sessions[_digest(cookie)] = session
        return cookie, session

    def find(self, cookie: str | None, *, use: bool = True) -> Session | None:
        """The session of a cookie, which this request prolongs unless it is not a `use` by a person."""
        if not cookie:
            return None
        now = self._clock()
        with self._lock:
            session = self._sessions.get(_digest(cookie))
            if session is None or self._is_over(session, now):
                return None
            if use:
                session.used_at = now
            return session

    def end(self, ended: Session) -> None:
        """End a session: nobody finds it any more, and its streams close."""
        ended.ended = True
        with self._lock:
            self._sessions = {key: one for key, one in self._sessions.items() if one is not ended}
        ended.wake()

    def due(self, seconds: float) -> tuple[Session, ...]:
        """Those whose rights have not been asked for so long; ends what is idle."""
        now = self._clock()
        with self._lock:
            self._sweep(now)
            due = [one for one in self._sessions.values() if now - one.asked_at >= seconds]
            for session in due:
                session.asked_at = now
        return tuple(due)

    def _sweep(self, now: float) -> None:
        for key, session in tuple(self._sessions.items()):
            if self._is_over(session, now):
                session.ended = True
                del self._sessions[key]

    def _is_over(self, session: Session, now: float) -> bool:
        return session.ended or now - session.used_at > self._idle_seconds


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
