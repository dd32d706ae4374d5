"""The service that follows the engine for everyone on this machine, and publishes what it knows."""

import asyncio
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.requests import Doubts
from ovirt_placement.inventory.connection import SOCKET_NAME
from ovirt_placement.inventory.publication import Refresh, now
from ovirt_placement.inventory.service.attempts import (
    LONGEST_PAUSE_SECONDS,
    Attempts,
    InventoryMetrics,
    connected,
    in_thread,
)
from ovirt_placement.inventory.service.follower import Follower
from ovirt_placement.inventory.service.publisher import PublicationState, Publisher
from ovirt_placement.inventory.service.readers import Decider, Readers
from ovirt_placement.inventory.service.schedule import (
    Reconciliations,
    ReconciliationScope,
    next_reading,
    reconciliations,
    seconds_between_turns,
)
from ovirt_placement.inventory.service.view import read_plausible
from ovirt_placement.inventory.stored import KeyWatch, demands_of
from ovirt_service import identity
from ovirt_service import metrics as metrics_page
from ovirt_service.daemon import Garbage, Notifier, Progress
from ovirt_service.errors import UserError
from ovirt_service.repetition import Said

#: How often the store is looked at for placement keys, besides when a reader waits for that.
_POLL_SECONDS = 0.25
#: So often at most is the engine asked for VMs that readers ask for and that are not known.
_SEEK_SECONDS = 0.25
#: Searches are answered at most so often, however much happens.
_SEARCH_PAUSE_SECONDS = 1.0
#: systemd must know by then that it has started: it must be there when an engine that is away comes back.
_READY_SECONDS = 20.0
#: A turn may make this many requests, each of which takes as long as it may, before it is believed to hang.
_MOST_SLOW_REQUESTS = 10
#: A thread that parses a long answer lets others go on so often. A turn is made of many short steps, and
#: would wait before each for Python's usual 5 ms: decisions wait for turns, and nothing for larger readings.
_SWITCH_SECONDS = 0.0005

#: Nothing is published before the store was asked: decisions without keys would be worse than none so long.
_FIRST_STORE_SECONDS = 3.0
#: So long a store is waited for that has answered before, and may have many keys.
_STORE_SECONDS = 1.0

_LOCK = "lock"
_NEVER = float("-inf")

_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


def run(config: Config, ready: Callable[[], None], decider: Decider) -> None:
    """Answer until SIGTERM or SIGINT; `ready` is called once it answers, by what it has read or had saved.

    Raises `UserError` if the directory cannot be used, is another service's, or, before the first
    snapshot, if the engine cannot be talked to because of what a person must set right.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    metrics = InventoryMetrics(config.engine.label)
    with owned(config.inventory.directory), connected(config.engine, metrics.requests) as engine:
        metrics_page.serve(metrics.registry, config.inventory.metrics, "[inventory] metrics")

        async def serve() -> None:
            await _Service(config, engine, ready, metrics, decider).serve()

        asyncio.run(serve())


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Own the directory, and leave no socket there. Raises `UserError` if it cannot be used or is taken.

    The lock ends with this process, however that ends.
    """
    if identity.is_others(directory):
        raise UserError(f"[inventory] directory: {directory}: root publishes in none that others may write")
    with ExitStack() as ending:
        try:
            directory.mkdir(exist_ok=True)
            # A file of our own: any reader of the directory could hold a lock on that for ever.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            owner = os.open(directory / _LOCK, flags, 0o600)
            ending.callback(os.close, owner)
            if not os.access(directory, os.W_OK):
                raise PermissionError(0, "may not write there")
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"[inventory] directory: {directory}: another inventory publishes there"
            ) from None
        except OSError as error:
            raise UserError(f"[inventory] directory: {directory}: {error.strerror}") from None
        (directory / SOCKET_NAME).unlink(missing_ok=True)
        ending.callback((directory / SOCKET_NAME).unlink, missing_ok=True)
        yield


class _Lane(NamedTuple):
    """Larger readings that are made one after the other, the most needed first."""

    attempts: Attempts
    scopes: Reconciliations


#: Details of VMs take so long that nothing else may wait for them.
_LANES = (
    (ReconciliationScope.WHOLE, ReconciliationScope.HOSTS, ReconciliationScope.STATISTICS),
    (ReconciliationScope.DETAILS,),
    (ReconciliationScope.SEARCHES,),
)


class _Service:
    """Loops: one follows the events, others make the larger readings, and one looks at the store.

    Nothing waits for the store but the first publication and who wants to know what it says now. Made within
    the loop of asyncio that it is for.
    """

    def __init__(
        self,
        config: Config,
        engine: EngineConnection,
        ready: Callable[[], None],
        metrics: InventoryMetrics,
        decider: Decider,
    ) -> None:
        self._settings = settings = config.inventory
        self._engine, self._metrics, self._ready = engine, metrics, ready
        self._notifier = Notifier()
        self._publisher = Publisher(settings.directory, self._say_ready, metrics, config.engine.url or "")
        self._readers = Readers(
            self._publisher, metrics, config, decider, self._want, self._awaited, self._knows
        )
        self._following, self._looking = Attempts(), Attempts()
        self._larger = reconciliations(settings)
        self._lanes = [_Lane(Attempts(), {one: self._larger[one] for one in scopes}) for scopes in _LANES]
        for lane in self._lanes:
            for one in lane.scopes.values():
                one.wake = lane.attempts.want_from_any_thread
        self._follower = Follower(
            engine,
            now,
            lambda vm, host, before: self._readers.decisions.accepted.heard(vm, host, before, now()),
            self._larger,
            tagged=config.ha.tagged,
            came_late=self._following.want_from_any_thread,
        )
        self._doubts = Doubts()
        self._key_watch = KeyWatch(config.store, config.engine.name, _FIRST_STORE_SECONDS, _STORE_SECONDS)
        self._said = Said()
        self._sought = asyncio.Event()
        #: When a reader last asked for something newer, and when the turn began that is under way.
        self._asked_at = self._turning_since = _NEVER
        #: How long it took from a question to the engine to the version with its answer.
        self._turn_seconds = 0.0
        self._garbage = Garbage(alone=True)
        longest_turn = _MOST_SLOW_REQUESTS * config.engine.timeout_seconds
        self._progress = Progress(settings.interval_seconds + LONGEST_PAUSE_SECONDS + longest_turn)

    def _say_ready(self) -> None:
        self._ready()
        self._notifier.ready()

    async def serve(self) -> None:
        """Read and answer until a signal comes, or until a first reading shows a wrong set-up."""
        self._publisher.restore(self._settings.longest_age_seconds)
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(_READY_SECONDS, self._notifier.ready)
        server = await self._readers.listen(self._settings.directory)
        work = (
            self._keep_following(),
            self._keep_looking(),
            self._keep_seeking(),
            *map(self._keep_reading, self._lanes),
            self._publisher.keep_saved(),
            self._notifier.keep_alive(lambda: self._progress.hangs),
        )
        *loops, watchdog = map(asyncio.create_task, work)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        if self._publisher.version is not None:
            self._say_ready()
        stopping = asyncio.create_task(stopped.wait())
        try:
            ended, _ = await asyncio.wait([*loops, stopping], return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
            _log.info("ends")
            self._notifier.stopping()
        finally:
            for task in (*loops, stopping, watchdog):
                task.cancel()
            server.close()
            self._key_watch.close()
            self._readers.close()
            self._publisher.withdraw()

    async def _keep_following(self) -> None:
        while True:
            self._progress.mark()
            began = self._turning_since = self._following.begin()
            with self._metrics.readings.labels("turn").time():
                state = await self._attempt(self._following, self._follow_once)
            self._turning_since = _NEVER
            if state is not None:
                self._publisher.state = state
            await self._publish()
            if state is not None:
                seconds = now() - began
                self._turn_seconds = max(seconds, (self._turn_seconds + seconds) / 2)
                self._follower.unknown_vms.published(began)
            await self._readers.report()
            if state is not None:
                await self._attempt(self._following, self._follower.follow_up)
            if not self._following.wanted.is_set():
                self._garbage.collect(began)
            asked_ago = now() - max(self._asked_at, self._publisher.decided_at)
            longest = seconds_between_turns(self._settings, self._turn_seconds, asked_ago)
            await self._following.pause(began + longest - now())

    def _follow_once(self) -> PublicationState:
        follower = self._follower
        follower.demands = demands_of(self._publisher.keys.records)
        follower.turn()
        snapshot = follower.snapshot() if follower.believable else None
        return PublicationState(snapshot, follower.moments, follower.needs, follower.lacking)

    async def _keep_looking(self) -> None:
        while True:
            began = self._looking.begin()
            self._publisher.keys = await in_thread(partial(self._key_watch.ask_keys, began))
            # Keys and rules that need what is not read: a turn has it read at once.
            if demands_of(self._publisher.keys.records).lack(self._follower.demands):
                self._following.wanted.set()
            # A turn that began a moment ago publishes them as well: who waits needs one version, not two.
            if self._turning_since < now() - _POLL_SECONDS:
                await self._publish()
                await self._readers.report()
            await self._looking.pause(began + _POLL_SECONDS - now())

    async def _keep_seeking(self) -> None:
        """Have VMs looked for that are not known, but seldom: the others do not wait for them."""
        while True:
            await self._sought.wait()
            self._sought.clear()
            self._following.wanted.set()
            await asyncio.sleep(_SEEK_SECONDS)

    async def _keep_reading(self, lane: _Lane) -> None:
        while True:
            began, needs = lane.attempts.begin(), self._follower.needs
            scope, _ = next_reading(lane.scopes, needs, began)
            if scope is not None:
                reading = partial(read_plausible, self._doubts, self._engine, scope, needs, began)
                with self._metrics.readings.labels(scope.value).time():
                    found = await self._attempt(lane.attempts, reading)
                if found is not None:
                    lane.scopes[scope].began = began
                    if scope is ReconciliationScope.WHOLE:
                        lane.scopes[ReconciliationScope.HOSTS].began = began
                    self._follower.hand_in(found)
                    self._following.wanted.set()
                await self._readers.report()
                await asyncio.sleep(_SEARCH_PAUSE_SECONDS * (scope is ReconciliationScope.SEARCHES))
            await lane.attempts.pause(next_reading(lane.scopes, self._follower.needs, now())[1])

    async def _attempt(self, attempts: Attempts, ask: Callable[[], _Result]) -> _Result | None:
        """Ask the engine in a thread; None if that failed, which is reported once, until it answers.

        Raises what no waiting can heal at the start.
        """
        try:
            result = await in_thread(ask)
        except Exception as error:
            text = str(error)
            if not isinstance(error, UserError):
                text = f"reading the engine failed: {error}"
                _log.exception("reading the engine failed")
            elif not self._publisher.has_read and not isinstance(error, EngineAway):
                raise
            if self._said.is_news("engine"):
                _log.warning("%s; asking again until it answers", text)
            attempts.error = text
            attempts.failures += 1
            self._notifier.ready()  # it serves and tries: more cannot be expected of it now
            return None
        attempts.failures = 0
        failing = any(one.failures for one in (self._following, *(lane.attempts for lane in self._lanes)))
        if not failing and self._said.is_over("engine"):
            _log.info("the engine answers again")
        return result

    async def _publish(self) -> None:
        await in_thread(self._readers.place_accepted)
        fails = any(lane.attempts.failures for lane in self._lanes)
        await self._publisher.publish(wait_for_details=not fails)

    def _want(self, question: Refresh) -> None:
        """Have read soon what answers a reader, and what others will ask for after it."""
        self._asked_at = self._larger[ReconciliationScope.STATISTICS].asked_at = asked = now()
        if question.whole:
            whole = self._larger[ReconciliationScope.WHOLE]
            whole.asked_since = max(whole.asked_since, question.not_before)
        if next_reading(self._lanes[0].scopes, self._follower.needs, asked)[0] is not None:
            self._lanes[0].attempts.wanted.set()
        if question.vm is not None and not self._knows(question):
            self._follower.unknown_vms.want(question.vm)
            self._sought.set()
        self._following.want(question.not_before)
        self._looking.want(question.not_before)

    def _knows(self, question: Refresh) -> bool:
        """Whether the VM that is asked for is published, if the engine has it."""
        state, version, vm = self._publisher.state, self._publisher.version, question.vm
        if vm is None or state is None or state.snapshot is None or version is None:
            return True
        # Not the state, which is there a moment before its version: who asks meanwhile is answered by that.
        if vm in version.snapshot.vm_by_id:
            return True
        return self._follower.unknown_vms.is_known(vm, question.not_before)

    def _awaited(self, question: Refresh) -> Iterable[Attempts]:
        """The attempts without which a reader cannot be answered."""
        waits = question.whole or not self._follower.believable
        return (self._following, self._lanes[0].attempts) if waits else (self._following,)
