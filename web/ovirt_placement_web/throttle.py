"""Log-ins that follow failed ones are slowed down, and nobody is locked out by those who guess."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager

from ovirt_placement.engine.connection.sso import Refused
from ovirt_placement_web.bounds import Bound, Limit
from ovirt_placement_web.metrics import WebMetrics

_FAILURES = 5
_FAILURE_SECONDS = 300.0
#: What each try waits that is slowed down, once it is its turn.
_SLOW_SECONDS = 1.0
#: How many of a name, or from an address, are tried at once, and wait for a turn: where the engine answers
#: within half a second, all have it before their patience ends. And of these from one address or of one name.
_MOST_SLOWED = Limit(8, 300)
_MOST_OF_ONE = Limit(1, 5)
_PATIENCE_SECONDS = 60.0
#: And of all names and addresses: each takes a connection.
_MOST_SLOWED_IN_ALL = 1000
#: Of more names and addresses than these, those that failed first are forgotten.
_MOST_KEYS = 20_000

_Key = tuple[str, str]


class Throttle:
    """Counts failed log-ins by name and by address: after five in five minutes, eight a second are asked.

    Tries of a name take turns by their addresses, one at a time from each, and those from an address by their
    names; where too many wait, the last of who has most waiting is refused. So a right password passes
    however many are guessed from elsewhere, slowly. Those that have no answer yet count as failed: else all
    that come at once would be asked. Who comes with the password with which a name has logged in last, since
    this service began, waits for nobody who guesses, from wherever. For the loop's thread alone.
    """

    def __init__(
        self,
        metrics: WebMetrics,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._metrics = metrics
        #: Passwords are compared by digests, which are worth nothing without this key.
        self._key = secrets.token_bytes(32)
        self._accepted: dict[str, bytes] = {}
        self._clock = clock
        self._pause = pause
        self._tries: dict[_Key, deque[float]] = {}
        #: Those that somebody waits in.
        self._slowed: dict[_Key, Bound] = {}

    @asynccontextmanager
    async def turn(self, name: str, address: str, password: str) -> AsyncIterator[bool]:
        """Hold a turn of a try, which fails if `Refused` is raised in it; whether it was right before.

        `address` is empty where many people come from it. Raises `Refusal` if too many wait already.
        """
        name = name.casefold()[:256]
        digest = hmac.digest(self._key, f"{name}\0{password}".encode(), "sha256")
        known = hmac.compare_digest(self._accepted.get(name, b""), digest)
        # Whom no address distinguishes from others is one by itself.
        keys: dict[_Key, Hashable] = {("address", address): name} if address else {}
        keys["name", name] = address or object()
        slowed = [] if known else [key for key in keys if self._failed(key) >= _FAILURES]
        async with AsyncExitStack() as turns:
            for key in slowed:
                await turns.enter_async_context(self._turn(key, keys[key]))
            if slowed:
                await self._pause(_SLOW_SECONDS)
            for key in keys:
                self._add(key)
            try:
                yield known
            except Refused:
                if known:
                    self._accepted.pop(name, None)  # it was changed
                raise
            except BaseException:
                self._take_back(keys)
                raise
            else:
                self._take_back(keys)
                self._accept(name, digest)

    def _accept(self, name: str, digest: bytes) -> None:
        self._accepted.pop(name, None)
        self._accepted[name] = digest
        if len(self._accepted) > _MOST_KEYS:
            del self._accepted[next(iter(self._accepted))]

    @asynccontextmanager
    async def _turn(self, key: _Key, asker: Hashable) -> AsyncIterator[None]:
        """Wait for the turn of a name, or of an address, and hold it."""
        bound = self._slowed.get(key)
        if bound is None:
            bound = self._slowed[key] = Bound(
                "slowed log-ins",
                self._metrics,
                most=_MOST_SLOWED,
                each=_MOST_OF_ONE,
                retry_seconds=5,
                patience_seconds=_PATIENCE_SECONDS,
            )
        try:
            if sum(one.running + one.waiting for one in self._slowed.values()) >= _MOST_SLOWED_IN_ALL:
                max(self._slowed.values(), key=lambda one: one.waiting).make_room()
            async with bound.place(asker):
                yield
        finally:
            if not bound.running + bound.waiting and self._slowed.get(key) is bound:
                del self._slowed[key]

    def _failed(self, key: _Key) -> int:
        since = self._clock() - _FAILURE_SECONDS
        return sum(at > since for at in self._tries.get(key, ()))

    def _add(self, key: _Key) -> None:
        tries = self._tries.pop(key, deque(maxlen=_FAILURES))
        self._tries[key] = tries
        tries.append(self._clock())
        while len(self._tries) > _MOST_KEYS:
            oldest = next(iter(self._tries))
            del self._tries[oldest]

    def _take_back(self, keys: dict[_Key, Hashable]) -> None:
        """A try was right, or nobody has answered it."""
        for key in keys:
            if self._tries.get(key):
                self._tries[key].pop()
