"""Carries out admitted steps and follows each to its end: intent first, then the request, then the proof.

Whenever the process dies, the store holds the intent and the engine the truth; `follow` brings the two
together again, whether after a poll or after a restart.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from ovirt_enforcer.gates.admission import Admitted
from ovirt_enforcer.gates.history import NEVER_ASKED, REFUSED
from ovirt_enforcer.migrating.circumstances import digest
from ovirt_enforcer.migrating.refusals import error_of
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.names import host_name, vm_name
from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.reading import events
from ovirt_placement.engine.writing import migration
from ovirt_placement.engine.writing.migration import Progress, Rejection, VmState, Watch
from ovirt_placement.model import Snapshot
from ovirt_placement.store.fencing import LeaseLost
from ovirt_placement.store.intents import ImpossibleTransition, Intent, IntentState, Store

_log = logging.getLogger(__name__)

_ENDS: Final = {
    Progress.RETURNED: "it is back on its source",
    Progress.ELSEWHERE: "it is on a third host: somebody else moved it",
    Progress.STOPPED: "the VM stopped",
    Progress.GONE: "the VM was removed",
}
_NOTHING: Final = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())


@dataclass(frozen=True, slots=True)
class Task:
    """A step to carry out: what it is of, and what it was decided on."""

    admitted: Admitted
    plan: str
    #: From 1.
    number: int
    snapshot: Snapshot
    #: Of the lease, from before the snapshot was read.
    epoch: int


class Executor:
    """Begins migrations and finds out how they ended."""

    def __init__(
        self,
        connection: EngineConnection,
        store: Store,
        settings: EnforcerSettings,
        clock: Callable[[], float],
        still_leads: Callable[[int], bool],
        began: Callable[[Iterable[Intent]], None] = lambda intents: None,
        ended: Callable[[Intent], None] = lambda intent: None,
    ) -> None:
        """`clock` gives seconds that only grow; it measures how long a migration takes.

        `still_leads` is asked just before a request whether the epoch of its decision lasts. `began` is told
        of what is about to be asked for, `ended` of each migration whose end is known.
        """
        self._connection = connection
        self._store = store
        self._settings = settings
        self._clock = clock
        self._still_leads = still_leads
        self._began = began
        self._ended = ended
        self._watches: dict[int, Watch] = {}
        #: Migrations of which it was said that they take long.
        self._late: set[int] = set()
        #: For names alone.
        self._latest = _NOTHING

    def look(self, snapshot: Snapshot) -> None:
        """Learn the names of VMs and hosts."""
        self._latest = snapshot

    def keep_only(self, open_intents: Collection[Intent]) -> None:
        """Forget what was seen of other migrations: somebody else has brought them to an end."""
        known = {intent.id for intent in open_intents}
        self._late &= known
        for gone in self._watches.keys() - known:
            del self._watches[gone]

    def begin(self, task: Task) -> tuple[Intent, ...]:
        """Ask the engine for the migration of an admitted step; return its intents as they are afterwards.

        A refusal ends them as failed. Raises `EngineAway` or `EngineSetupError` if the engine cannot be
        asked, `StoreAway` if the intents cannot be written, and `LeaseLost` if another may lead by now: then
        the engine is not asked.
        """
        intents = self._prepare(task)
        self._began(intents)
        step = task.admitted.step
        chosen = None if self._settings.target == "engine" else step.target
        if not self._still_leads(task.epoch):
            raise LeaseLost(f"epoch {task.epoch} of the lease is over: another may lead now")
        try:
            migration.migrate(
                self._connection, step.vms[0], chosen, intents[0].correlation_id, closure=step.closure
            )
        except Rejection as rejection:
            error = error_of(rejection, chosen and host_name(chosen, task.snapshot))
            # Of a group some may have gone before another was refused: their events will tell.
            return self._record(intents, self._store.lose if step.closure else self._store.fail, error)
        except EngineAway as away:
            if away.request_sent:
                self._record(intents, self._store.lose, str(away))
            else:
                self._record(intents, self._store.fail, NEVER_ASKED)
            raise
        except EngineSetupError:
            self._record(intents, self._store.fail, NEVER_ASKED)
            raise
        except EngineFault as fault:
            return self._record(intents, self._store.lose, str(fault))
        return self._record(intents, self._store.accept)

    def follow(self, intent: Intent) -> Intent | None:
        """Look once at a migration that is not known to have ended; return it once it is.

        Raises `EngineAway`, `EngineSetupError` or `StoreAway`; to call it again later is always right.
        """
        if intent.state is not IntentState.ACCEPTED and not self._confirmed(intent):
            return self._unconfirmed(intent)
        now = self._clock()
        before = self._watches.get(intent.id) or migration.watch(intent.source or "", intent.target, now)
        seen = migration.read_vm(self._connection, intent.vm)
        watch = self._watches[intent.id] = before.step(seen, now)
        if watch.progress is Progress.ARRIVED:
            return self._end(intent, self._store.finish)
        if watch.progress is Progress.ELSEWHERE and self._settings.target == "engine":
            return self._arrived_elsewhere(intent, seen)
        if watch.ended:
            return self._end(intent, self._store.fail, self._why_failed(intent, _ENDS[watch.progress]))
        if now - watch.accepted_at > self._settings.migration_timeout_seconds:
            self._warn(intent)
        return None

    def _arrived_elsewhere(self, intent: Intent, seen: VmState | None) -> Intent | None:
        chosen = intent.target if seen is None or seen.host is None else seen.host
        return self._end(intent, lambda known: self._store.finish(known, chosen))

    def _prepare(self, task: Task) -> list[Intent]:
        """Write down every VM of the step; the first one's correlation id goes to the engine."""
        correlation_id = uuid.uuid4().hex
        step, snapshot = task.admitted.step, task.snapshot
        return [
            self._store.prepare(
                vm=vm,
                cluster=task.admitted.cluster,
                source=source,
                target=step.target,
                correlation_id=f"{correlation_id}-{number}" if number else correlation_id,
                memory_mb=snapshot.vm_by_id[vm].memory_mb,
                epoch=task.epoch,
                plan=task.plan,
                step=task.number,
                circumstances=digest(snapshot, vm, (source, step.target)),
            )
            for number, (vm, source) in enumerate(zip(step.vms, step.sources, strict=True))
        ]

    def _confirmed(self, intent: Intent) -> bool:
        """Whether the engine's events show that it began what we do not know to be accepted."""
        if not any(event.code in events.STARTED for event in self._events(intent)):
            return False
        self._record((intent,), self._store.accept)
        return True

    def _unconfirmed(self, intent: Intent) -> Intent | None:
        """Wait until the engine must have shown that it accepted; after that, it has not."""
        seen = migration.read_vm(self._connection, intent.vm)
        answered = (intent.error or "").startswith(REFUSED)
        settled = answered or intent.age_seconds >= self._settings.settle_seconds
        if not settled or (seen and seen.status == "migrating"):
            return None
        return self._end(intent, self._store.fail, self._why_not_begun(intent))

    def _why_not_begun(self, intent: Intent) -> str:
        """As a refusal, where the engine's answer or its events say so; else it was never asked."""
        answered = intent.error or ""
        if answered.startswith(REFUSED):
            return answered
        said = [event.description for event in self._events(intent) if event.code in events.REFUSED]
        return f"{REFUSED}{said[-1].strip().removesuffix('.')}" if said else NEVER_ASKED

    def _events(self, intent: Intent) -> tuple[events.Event, ...]:
        correlation_id = intent.correlation_id.partition("-")[0]
        return events.find_migration_events(self._connection, correlation_id=correlation_id, vm_id=intent.vm)

    def _why_failed(self, intent: Intent, otherwise: str) -> str:
        """Give the engine's own words, where it has any."""
        said = [event.description for event in self._events(intent) if event.code in events.FAILED]
        return said[-1].strip().removesuffix(".") if said else otherwise

    def _end(self, intent: Intent, transition: Callable[..., Intent], *error: str) -> Intent | None:
        return next(iter(self._record((intent,), transition, *error)), None)

    def _record(
        self, intents: Iterable[Intent], transition: Callable[..., Intent], *error: str
    ) -> tuple[Intent, ...]:
        """Record a transition of each intent; where somebody else has done so already, theirs stands."""
        recorded = []
        for intent in intents:
            try:
                after = transition(intent.id, *error)
            except ImpossibleTransition as overtaken:
                _log.warning("%s: %s", self._title(intent), overtaken)
                continue
            _log.info("%s: %s%s", self._title(after), after.state, "".join(f": {text}" for text in error))
            recorded.append(after)
            if not after.open:
                self._watches.pop(intent.id, None)
                self._late.discard(intent.id)
                self._ended(after)
        return tuple(recorded)

    def _warn(self, intent: Intent) -> None:
        if intent.id not in self._late:
            self._late.add(intent.id)
            _log.warning("%s: it takes long; what waits for it goes on when it ends", self._title(intent))

    def _title(self, intent: Intent) -> str:
        vm, host = vm_name(intent.vm, self._latest), host_name(intent.target, self._latest)
        return f"migration of {vm} to {host} ({intent.correlation_id})"
