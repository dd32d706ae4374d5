"""Sessions of people: a browser has a random cookie, and the engine's token never leaves memory."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ovirt_placement.engine.reading.rights import Rights

#: Of more sessions the one that was idle longest ends: memory is bounded, however often users log in.
_MOST_SESSIONS = 10_000
_FAILURES = 5
_FAILURE_SECONDS = 300.0
#: The wait of who has as many tries under way as may fail.
_A_MOMENT = 1.0
#: Of more names and addresses than these, those that failed first are forgotten.
_MOST_NAMES = 20_000

Clock = Callable[[], float]


@dataclass(eq=False)
class Session:
    """One log-in. Its token is the engine's, and is shown nowhere."""

    rights: Rights
    csrf: str
    token: str = field(repr=False)
    used_at: float
    validated_at: float
    ended: bool = False
    streams: int = 0

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
                oldest = min(self._sessions, key=lambda one: self._sessions[one].used_at)
                self._sessions.pop(oldest).ended = True
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

    def to_validate(self, seconds: float) -> tuple[Session, ...]:
        """Those whose tokens the engine has not been asked about for so long; ends what is idle."""
        now = self._clock()
        with self._lock:
            self._sweep(now)
            due = [one for one in self._sessions.values() if now - one.validated_at >= seconds]
            for session in due:
                session.validated_at = now
        return tuple(due)

    def _sweep(self, now: float) -> None:
        for key, session in tuple(self._sessions.items()):
            if self._is_over(session, now):
                session.ended = True
                del self._sessions[key]

    def _is_over(self, session: Session, now: float) -> bool:
        return session.ended or now - session.used_at > self._idle_seconds


class Streams:
    """How many event streams there are."""

    def __init__(self, most: int, per_session: int) -> None:
        self._most = most
        self._per_session = per_session
        self.open = 0

    @contextmanager
    def opened(self, session: Session) -> Iterator[bool]:
        """Count one; whether there is room for it. For the loop's thread alone."""
        if self.open >= self._most or session.streams >= self._per_session:
            yield False
            return
        self.open += 1
        session.streams += 1
        try:
            yield True
        finally:
            self.open -= 1
            session.streams -= 1


class Throttle:
    """Counts failed log-ins by name and by address: after five in five minutes the engine is not asked.

    Those whose answer has not come yet count as well: else all that come at once would be asked about.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[tuple[str, str], deque[float]] = {}
        self._under_way: Counter[tuple[str, str]] = Counter()

    def begin(self, name: str, address: str) -> float:
        """How long this try has to wait; if it need not (0), it is under way until `end`."""
        now, keys = self._clock(), _keys(name, address)
        with self._lock:
            wait = max(self._left(key, now) for key in keys)
            if wait == 0:
                self._under_way.update(keys)
            return wait

    def end(self, name: str, address: str) -> None:
        """A try that was begun has its answer."""
        with self._lock:
            for key in _keys(name, address):
                self._under_way[key] -= 1
                if not self._under_way[key]:
                    del self._under_way[key]

    def failed(self, name: str, address: str) -> None:
        now = self._clock()
        with self._lock:
            for key in _keys(name, address):
                known = self._failures.pop(key, deque(maxlen=_FAILURES))
                self._failures[key] = known
                known.append(now)
            while len(self._failures) > _MOST_NAMES:
                del self._failures[next(iter(self._failures))]

    def _left(self, key: tuple[str, str], now: float) -> float:
        recent = [at for at in self._failures.get(key, ()) if at > now - _FAILURE_SECONDS]
        if len(recent) >= _FAILURES:
            return recent[0] + _FAILURE_SECONDS - now
        return _A_MOMENT if len(recent) + self._under_way[key] >= _FAILURES else 0.0


def _keys(name: str, address: str) -> tuple[tuple[str, str], ...]:
    """Log-ins by token have no name: from one address they must not lock out those from all others."""
    named = (("name", name.casefold()[:256]),) if name else ()
    return (*named, ("address", address))


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
