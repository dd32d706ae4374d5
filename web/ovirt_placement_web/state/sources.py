"""Where what is shown comes from: the state by one thread that follows the inventory, the past by the store.

Viewers cost the engine nothing: they read what the inventory publishes. Where no inventory runs, the engine
is read every few seconds, once for all of them.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from ovirt_placement.answers.document import KnownState, known_state, listed
from ovirt_placement.answers.status import EnforcementRecord, enforcement
from ovirt_placement.answers.status.health import HealthState, health_of_known, nothing_known
from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import NoService
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.store.enforcer.history import HistoryStore, PlanRecord
from ovirt_placement.store.enforcer.intents import OPEN_STATES
from ovirt_placement.store.orders import ApprovalStore, Pause, PauseStore, WaitingPlan
from ovirt_placement.store.sql import access
from ovirt_placement.store.sql.access import StoreAccess
from ovirt_placement.store.user_actions import UserAction, UserActionStore
from ovirt_service.daemon import Garbage
from ovirt_service.errors import UserError
from ovirt_service.log import Complaint

#: What is published is no older than this while the engine answers: the inventory asks it more often.
_FRESH_SECONDS = 15.0
#: How long a reading may take until what was known last is shown.
_PATIENCE_SECONDS = 10.0
#: How often it is decided whether the engine itself must be read, where no inventory runs.
_PAUSE_SECONDS = 0.5
#: How often the age is looked at while the inventory publishes nothing.
_WAIT_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class View:
    """What is known at one moment; a higher number is newer."""

    number: int
    parts: HealthState
    #: A moment of `time.monotonic` at which all of it was so.
    true_at: float
    #: Why nothing newer is known; None while the engine answers.
    error: str | None

    @property
    def snapshot(self) -> Snapshot:
        return self.parts.snapshot

    @property
    def age_seconds(self) -> float:
        return max(0.0, time.monotonic() - self.true_at)

    @property
    def known(self) -> bool:
        return self.parts.source.kind != "nothing"


class LiveState:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._thread = threading.Thread(target=self._follow, name="keeper", daemon=True)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._wakers: set[Callable[[], object]] = set()
        #: Another thing of each state, and None while nothing newer is known.
        self._shown: object = "starting"
        #: What was known last.
        self._found: inventory.Known | None = None
        self._complaint = Complaint(_log, "the state is of old", "the state is of now again")
        parts = nothing_known(config, "nothing has been read yet")
        # Newer than all of a service that ran before: browsers and programs keep the numbers that they saw.
        number = time.time_ns() // 1_000_000
        self.view = View(number, parts, time.monotonic(), "starting")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    @contextmanager
    def subscribed(self) -> Iterator[asyncio.Event]:
        """An event of the running loop that is set by each new view."""
        event = asyncio.Event()
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, event.set)
        with self._lock:
            self._wakers.add(wake)
        try:
            yield event
        finally:
            with self._lock:
                self._wakers.discard(wake)

    def _follow(self) -> None:
        garbage = Garbage()
        while not self._stopped.is_set():
            try:
                self._read_state()
            except Exception:
                _log.exception("the state could not be read")
            changed = False
            try:
                changed = inventory.wait_for_change(_WAIT_SECONDS, config=self._config)
            except NoService:
                self._stopped.wait(_PAUSE_SECONDS)
            if not changed:
                garbage.collect(time.monotonic())

    def _read_state(self) -> None:
        last, shown = self.view, None
        try:
            found = known_state(self._config, deadline=_PATIENCE_SECONDS, max_age=_FRESH_SECONDS, stale=True)
        except UserError as failed:
            # Nothing newer is to be had: what was known stays, with the reason.
            error: str | None = str(failed)
            old = self._found and KnownState(self._found, last.age_seconds, error)
            parts = health_of_known(self._config, old) if old else nothing_known(self._config, str(failed))
            true_at = last.true_at
        else:
            self._found = found.known
            snapshot, published = found.known
            error, parts = found.error, health_of_known(self._config, found)
            version = id(snapshot) if published is None else published.version
            shown = version, snapshot.pending, error is None
            age = found.age_seconds if published is None else published.age_seconds
            true_at = time.monotonic() - (age or 0.0)
        new, self._shown = shown != self._shown, shown
        self.view = View(last.number + new, parts, true_at, error)
        self._complaint.say(error or "")
        with self._lock:
            wakers = tuple(self._wakers) if new else ()
        for wake in wakers:
            with suppress(RuntimeError):  # the loop has ended
                wake()


# -- What the store knows of plans: those that wait, those of lately, and what people have decided on them.
DAY: Final = 86400.0
MONTH: Final = 30 * DAY
#: How long the store may take to answer: a person has the rest of a view within a second.
_STORE_SECONDS: Final = 0.5
#: So long it is not asked again that has just not answered: a view reads several parts of it.
_REST_SECONDS: Final = 1.0

_Part = TypeVar("_Part", bound=StoreAccess)
_Item = TypeVar("_Item")


class Past:
    """Reads the store; each method raises `UserError` while it is away."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._rests_until = 0.0
        self._failed: UserError | None = None

    def read(self, part: type[_Part], ask: Callable[[_Part], tuple[_Item, ...]]) -> tuple[_Item, ...]:
        """All that a part of the store answers; nothing where there is no store yet."""
        if self._rests and self._failed is not None:
            raise self._failed.with_traceback(None)
        try:
            return access.stored(part, self._config, ask, (), patience_seconds=_STORE_SECONDS)
        except UserError as error:
            self._rest(error)
            raise

    def enforcement(self, config: Config, snapshot: Snapshot) -> EnforcementRecord:
        """What it says of the enforcer; a store that has just not answered has no time for it."""
        seconds = 0.0 if self._rests else _STORE_SECONDS
        found = enforcement(config, snapshot, seconds)
        if found.error is not None and seconds:
            self._rest(UserError(found.error))
        return found

    @property
    def _rests(self) -> bool:
        return time.monotonic() < self._rests_until

    def _rest(self, failed: UserError) -> None:
        self._rests_until, self._failed = time.monotonic() + _REST_SECONDS, failed

    def history(self, seconds: float, cluster: Cluster | None = None) -> tuple[PlanRecord, ...]:
        """Plans of this many seconds, the latest first."""
        found = self.read(HistoryStore, lambda store: store.plans(since_seconds=seconds))
        return tuple(one for one in reversed(found) if cluster is None or one.cluster == cluster.id)

    def waiting(self) -> dict[str, WaitingPlan]:
        """The plans that wait for a person's word, by their clusters."""
        return {one.cluster: one for one in self.read(ApprovalStore, ApprovalStore.waiting)}

    def pause(self, cluster: Cluster) -> Pause | None:
        """The pause of migrations that is in force in a cluster; None also while the store is away."""
        with suppress(UserError):
            pauses = self.read(PauseStore, PauseStore.pauses)
            return next((one for one in pauses if one.cluster in ("", cluster.id)), None)
        return None

    def plan_named(self, plan: str) -> PlanRecord | None:
        found = self.read(HistoryStore, lambda store: store.plans_named(plan))
        return next((one for one in found if one.id == plan), None)

    def words_on(self, plan: str) -> tuple[UserAction, ...]:
        """What people have said to a plan, the oldest first."""
        actions = self.read(UserActionStore, lambda store: store.actions(since_seconds=MONTH))
        return tuple(one for one in actions if one.plan == plan)

    def changed(self, former: str, present: str | None) -> str:
        """What has become of a plan that a user looked at, as sentences."""
        if present is None:
            last = next(reversed(self.words_on(former)), None)
            why = last.sentence if last else "its cluster needs none now"
            return f"the plan does not wait any more: {why}."
        before, after = (_moves(self.plan_named(plan)) for plan in (former, present))
        gone = [move for move in before if move not in after]
        new = [move for move in after if move not in before]
        text = f"the cluster has changed, and plan {present} waits in its place."
        text += f" No longer in it: {listed(gone)}." if gone else ""
        return text + (f" New in it: {listed(new)}." if new else "")


def runs(plan: PlanRecord) -> bool:
    """Whether it has a migration that has not ended, as far as is known."""
    return any(one.state in OPEN_STATES for one in plan.migrations)


def _moves(plan: PlanRecord | None) -> list[str]:
    every = plan.steps if plan else ()
    return [f"{vm['name']} to {step['to']['name']}" for step in every for vm in step["vms"]]
