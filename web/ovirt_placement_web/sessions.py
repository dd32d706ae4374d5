"""Who is known: sessions of people by their cookies, and tokens of programs and of the portal.

A browser has a random cookie; the engine's token never leaves memory.
"""

import asyncio
import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ovirt_placement.engine.connection.log_ins import sendable
from ovirt_placement.engine.users import Refused, Rights, UserTokens, read_rights
from ovirt_placement_web.bounds import Bounds, Latest

#: Of more sessions one ends of the user who has most, the one that was idle longest: memory is bounded,
#: however often users log in, and none of them logs another out.
_MOST_SESSIONS = 10_000


@dataclass(eq=False)
class Session:
    """One log-in. Its token is the engine's, and is shown nowhere."""

    key: bytes = field(repr=False)
    rights: Rights
    csrf: str
    token: str = field(repr=False)
    used_at: float
    #: When the engine was asked last what the person may do.
    asked_at: float
    ended: bool = False
    _streams: set[asyncio.Event] = field(default_factory=set, repr=False)

    def change(self, rights: Rights) -> None:
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
    """All, by the digest of what the cookie says; for the loop's thread alone, but `find`."""

    def __init__(self, idle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._sessions: dict[bytes, Session] = {}

    def begin(self, rights: Rights, token: str) -> tuple[str, Session]:
        """A new session, and what its cookie is to say: 256 random bits."""
        cookie, now = secrets.token_urlsafe(32), self._clock()
        self._sweep(now)
        while len(self._sessions) >= _MOST_SESSIONS:
            users = Counter(one.rights.user_id for one in self._sessions.values())
            ((most, _),) = users.most_common(1)
            of_user = (one for one in self._sessions.values() if one.rights.user_id == most)
            self.end(min(of_user, key=lambda one: one.used_at))
        session = Session(_digest(cookie), rights, secrets.token_urlsafe(32), token, now, now)
        self._sessions[session.key] = session
        return cookie, session

    def find(self, cookie: str | None, *, use: bool = True) -> Session | None:
        """The session of a cookie, which this request prolongs unless it is not a `use` by a person."""
        session = self._sessions.get(_digest(cookie or ""))
        if session is None or self._is_over(session, self._clock()):
            return None
        if use:
            session.used_at = self._clock()
        return session

    def end(self, ended: Session) -> None:
        ended.ended = True
        self._sessions.pop(ended.key, None)
        ended.wake()

    def due(self, seconds: float) -> tuple[Session, ...]:
        """Those whose rights have not been asked for so long; ends what is idle."""
        now = self._clock()
        self._sweep(now)
        due = tuple(one for one in self._sessions.values() if now - one.asked_at >= seconds)
        for session in due:
            session.asked_at = now
        return due

    def _sweep(self, now: float) -> None:
        for session in [one for one in self._sessions.values() if self._is_over(one, now)]:
            self.end(session)

    def _is_over(self, session: Session, now: float) -> bool:
        return session.ended or now - session.used_at > self._idle_seconds


def _digest(word: str) -> bytes:
    return hashlib.sha256(word.encode()).digest()


_TOKEN_SECONDS: Final = 60.0
_MOST_TOKENS: Final = 1000


class Bearers:
    """The engine is asked about each token once a minute, however many requests come with it.

    Whose token the engine has taken before does not queue with those unknown. For the loop's thread.
    """

    def __init__(self, tokens: UserTokens, bounds: Bounds) -> None:
        self._tokens = tokens
        self._bounds = bounds
        #: What the engine said of those that it took, and when; and when it refused others.
        self._known = Latest[bytes, tuple[Rights, float]](_MOST_TOKENS)
        self._refused = Latest[bytes, float](_MOST_TOKENS)
        self._asked: dict[bytes, asyncio.Task[Rights]] = {}

    async def rights(self, token: str, asker: Hashable, *, seconds: float = _TOKEN_SECONDS) -> Rights:
        """What the engine said of a token in the last `seconds`, else what it says when asked now.

        Raises `Refused`, `EngineAway`, and `Refusal` while too many ask.
        """
        key, now, bounds = _digest(token), time.monotonic(), self._bounds
        if not sendable(token) or now - self._refused.get(key, -_TOKEN_SECONDS) < _TOKEN_SECONDS:
            raise Refused("the engine does not take this token")
        known, asker = self._known.get(key), asker or key
        if known is not None and now - known[1] < seconds:
            return known[0]
        async with bounds.strangers.place(asker) if known is None else bounds.holders.place(key):
            if key not in self._asked:
                self._asked[key] = asked = asyncio.ensure_future(self._ask_engine(key, token, asker))
                asked.add_done_callback(lambda done: self._ended(key, done))
            return await asyncio.shield(self._asked[key])

    async def _ask_engine(self, key: bytes, token: str, asker: Hashable) -> Rights:
        bounds = self._bounds
        kind, asker = (bounds.rights, key) if key in self._known else (bounds.tokens, asker)
        try:
            rights = await kind.run(asker, read_rights, self._tokens, token)
        except Refused:
            self._known.pop(key, None)
            self._refused[key] = time.monotonic()
            raise
        self._known[key] = rights, time.monotonic()
        return rights

    def _ended(self, key: bytes, done: asyncio.Task[Rights]) -> None:
        del self._asked[key]
        if not done.cancelled():
            done.exception()  # that no request waits for it any more is no mistake
