"""How much of each kind of work may be under way, and how often one may guess a password.

No kind waits in a place where another has to pass, and none is kept out by those who ask much.
"""

import asyncio
import hmac
import logging
import os
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread

from ovirt_placement.engine.users import Refused
from ovirt_service.errors import UserError
from ovirt_service.metrics import Instruments
from ovirt_service.repetition import Said


class WebMetrics(Instruments):
    def __init__(self) -> None:
        super().__init__("ovirt_placement_web")
        self.running = self.gauge("requests_running", "Requests under way by kind of work", "kind")
        self.waiting = self.gauge("requests_waiting", "Requests that wait for a place", "kind")
        self.refused = self.counter(
            "requests_refused",
            "Requests refused since too many were under way: 429 of one session or address, 503 of all",
            "kind",
            "status",
        )
        self.connections = self.gauge("connections", "Connections that are open")
        self.closed = self.counter(
            "connections_closed",
            "Connections closed since no whole request came in time, or their answer was not read",
        )


#: A kind that is full is named in the log again after this many seconds.
_QUIET_SECONDS = 60.0
#: What is said to those whom no bound has refused: the engine or the store does not answer.
_RETRY_SECONDS = 5
#: Of a kind that anybody may ask for, this number wait, each with a connection: together they leave room for
#: those who are known, and an engine that answers is done with them within seconds.
_STRANGERS = 500

_Answer = TypeVar("_Answer")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_log = logging.getLogger(__name__)


class Refusal(Exception):
    """An answer other than what was asked for: its status, a sentence, and where to go on from there."""

    def __init__(
        self, status: int, text: str, headers: dict[str, str] | None = None, back: str = "/"
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        # What is not available now may be soon.
        self.headers = headers or ({"Retry-After": str(_RETRY_SECONDS)} if status == 503 else {})
        self.back = back


def sentence(error: object) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def unfound(error: UserError) -> str:
    """Why nothing is meant by a name: there is no such thing, or there are several."""
    return sentence(f"there is {error}" if str(error).startswith("no ") else error)


class Latest(dict[_Key, _Value]):
    """What was set last: of more than `most` keys, the one that was set longest ago is forgotten."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: _Key, value: _Value) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]


class Limit(NamedTuple):
    """How many requests of a kind run at once, and how many more wait for a place."""

    running: int
    waiting: int


@dataclass(eq=False)
class _Asker:
    running: int = 0
    #: The turns of those that wait, the longest first.
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


@dataclass(eq=False)
class Bound:
    """One kind of work: places for all, a part of them for each asker, in turns; for the loop's thread."""

    metrics: WebMetrics
    kind: str
    most: Limit
    #: Of one asker.
    each: Limit
    retry_seconds: int
    #: Who has waited for so long is refused.
    patience_seconds: float = 30.0

    def __post_init__(self) -> None:
        self._running = self.metrics.running.labels(self.kind)
        self._waiting = self.metrics.waiting.labels(self.kind)
        self._said = Said(_QUIET_SECONDS)
        self._free = self.most.running
        #: Who has had no turn for longest comes first.
        self._askers: dict[Hashable, _Asker] = {}
        self._threads = CapacityLimiter(self.most.running)

    async def run(self, asker: Hashable, work: Callable[..., _Answer], *arguments: object) -> _Answer:
        """Do it in a thread, once there is a place; raises `Refusal` if there is none."""
        async with self.place(asker):
            return await to_thread.run_sync(partial(work, *arguments), limiter=self._threads)

    @asynccontextmanager
    async def place(self, asker: Hashable) -> AsyncIterator[None]:
        """Hold a place; raises `Refusal` with 429 for one who asks too much, with 503 if all do."""
        own = self._askers.setdefault(asker, _Asker())
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            if own.running + len(own.waiting) >= sum(self.each):
                raise self._refusal(429, "too many of your requests are under way")
            waits = not self._free or own.running >= self.each.running
            if waits and self.waiting >= self.most.waiting:
                self.make_room(len(own.waiting) + 1)
            own.waiting.append(turn)
            self._give_places()
            if not turn.done():
                await self._wait(turn)
            yield
        finally:
            if turn in own.waiting:
                own.waiting.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._free += 1
                own.running -= 1
                self._running.dec()
                self._give_places()
            if not own.running and not own.waiting and self._askers.get(asker) is own:
                del self._askers[asker]

    async def _wait(self, turn: asyncio.Future[None]) -> None:
        try:
            with self._waiting.track_inprogress():
                async with asyncio.timeout(self.patience_seconds):
                    await turn
        except TimeoutError:
            raise self._refusal(503, "too many requests are under way") from None

    @property
    def waiting(self) -> int:
        return sum(len(one.waiting) for one in self._askers.values())

    @property
    def running(self) -> int:
        return self.most.running - self._free

    def make_room(self, fewer: int = 0) -> None:
        """Refuse the last one of the asker with the most that wait, if those are more than `fewer`.

        Else raise the `Refusal`: who asks little is not kept out by who asks much.
        """
        most = max((one.waiting for one in self._askers.values()), key=len, default=deque())
        refusal = self._refusal(503, "too many requests are under way")
        if len(most) <= fewer:
            raise refusal
        if not (turn := most.pop()).done():
            turn.set_exception(refusal)

    def _give_places(self) -> None:
        """In turns, to askers that wait and may have one more."""
        askers, each = self._askers, self.each.running
        while self._free:
            of = next((one for one, own in askers.items() if own.waiting and own.running < each), None)
            if of is None:
                return
            own = askers[of] = askers.pop(of)  # behind all others
            if not (turn := own.waiting.popleft()).done():
                self._free -= 1
                own.running += 1
                self._running.inc()
                turn.set_result(None)

    def _refusal(self, status: int, why: str) -> Refusal:
        self.metrics.refused.labels(self.kind, str(status)).inc()
        if self._said.is_news(status):
            _log.warning("%s: requests are refused with %d, since %s", self.kind, status, why)
        retry = self.retry_seconds
        text = f"{why[0].upper()}{why[1:]} ({self.kind}). Try again in {retry} s."
        return Refusal(status, text, {"Retry-After": str(retry)})


class Bounds:
    def __init__(self, metrics: WebMetrics, *, streams: int, streams_each: int) -> None:
        bound = partial(Bound, metrics)
        #: What is known is shown: no view waits for the engine. Few run at once: they take turns with the
        #: processor anyway.
        self.views = bound("views", Limit(8, 400), Limit(3, 40), 1)
        #: What takes seconds of this process's time: which failures are survived.
        self.checks = bound("checks", Limit(2, 40), Limit(1, 4), 2)
        #: What takes a process of its own, or waits for the engine: plans, what would come of changes.
        #: Two at once, but a processor is left to those who decide for the engine.
        at_once = max(1, min(2, len(os.sched_getaffinity(0)) - 1))
        self.plans = bound("plans", Limit(at_once, 40), Limit(1, 4), 5)
        self.acts = bound("acts", Limit(8, 40), Limit(2, 4), 5)
        self.log_ins = bound("log-ins", Limit(8, _STRANGERS), Limit(4, 16), 5)
        #: Tokens that are not known yet: each is asked about once, while all requests with it wait.
        self.tokens = bound("tokens", Limit(4, _STRANGERS), Limit(2, 8), 5)
        self.strangers = bound("requests with unknown tokens", Limit(_STRANGERS, 0), Limit(100, 0), 5)
        #: Requests with a token that is known, while the engine is asked about it again.
        self.holders = bound("requests with known tokens", Limit(_STRANGERS, 0), Limit(100, 0), 5)
        #: Rights of who is known are read again; a session has one question about them at a time.
        self.rights = bound("rights", Limit(4, 10_000), Limit(1, 1), 5)
        #: Event streams take a place each, and no thread.
        self.streams = bound("event streams", Limit(streams, 0), Limit(streams_each, 0), 30)


# -- Log-ins that follow failed ones.
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

_Source = tuple[str, str]


class Throttle:
    """Counts failed log-ins by name and by address: after five in five minutes, eight a second are asked.

    Tries of a name take turns by their addresses, one at a time from each, and those from an address by their
    names; where too many wait, the last of who has most waiting is refused. So a right password passes
    however many are guessed from elsewhere, slowly. Those that have no answer yet count as failed: else all
    that come at once would be asked. Who comes with the password with which a name has logged in last, since
    this service began, waits for none who guesses, from wherever. For the loop's thread alone.
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
        self._accepted = Latest[str, bytes](_MOST_KEYS)
        self._clock = clock
        self._pause = pause
        self._tries = Latest[_Source, deque[float]](_MOST_KEYS)
        self._slowed: dict[_Source, Bound] = {}

    @asynccontextmanager
    async def turn(self, name: str, address: str, password: str) -> AsyncIterator[bool]:
        """Hold a turn of a try, which fails if `Refused` is raised in it; whether it was right before.

        `address` is empty where many people come from it. Raises `Refusal` if too many wait already.
        """
        name = name.casefold()[:256]
        digest = hmac.digest(self._key, f"{name}\0{password}".encode(), "sha256")
        known = hmac.compare_digest(self._accepted.get(name, b""), digest)
        # Whom no address distinguishes from others is one by itself.
        keys: dict[_Source, Hashable] = {("address", address): name} if address else {}
        keys["name", name] = address or object()
        since = self._clock() - _FAILURE_SECONDS
        failures = {key: sum(at > since for at in self._tries.get(key, ())) for key in keys}
        slowed = [key for key in keys if failures[key] >= _FAILURES and not known]
        async with AsyncExitStack() as turns:
            for key in slowed:
                await turns.enter_async_context(self._hold_turn(key, keys[key]))
            if slowed:
                await self._pause(_SLOW_SECONDS)
            for key in keys:
                self._tries[key] = deque([*self._tries.get(key, ()), self._clock()], _FAILURES)
            refused = False
            try:
                yield known
                self._accepted[name] = digest
            except Refused:
                refused = True
                if known:
                    self._accepted.pop(name, None)  # it was changed
                raise
            finally:
                for key in () if refused else keys:  # it was right, or has no answer
                    if self._tries.get(key):
                        self._tries[key].pop()

    @asynccontextmanager
    async def _hold_turn(self, key: _Source, asker: Hashable) -> AsyncIterator[None]:
        new = Bound(self._metrics, "slowed log-ins", _MOST_SLOWED, _MOST_OF_ONE, 5, _PATIENCE_SECONDS)
        bound = self._slowed.setdefault(key, new)
        try:
            if sum(one.running + one.waiting for one in self._slowed.values()) >= _MOST_SLOWED_IN_ALL:
                max(self._slowed.values(), key=lambda one: one.waiting).make_room()
            async with bound.place(asker):
                yield
        finally:
            if not bound.running + bound.waiting and self._slowed.get(key) is bound:
                del self._slowed[key]
