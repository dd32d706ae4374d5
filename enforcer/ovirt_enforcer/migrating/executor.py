"""Carries out one admitted step and follows it to its end: intent first, then the request, then the proof.

Whenever the process dies, the store holds the intent and the engine the truth; `follow` brings the two
together again, whether after a poll or after a restart.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable

from ovirt_enforcer.gates.admission import Admitted
from ovirt_enforcer.gates.history import NEVER_ASKED
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.reading import events
from ovirt_placement.engine.writing import migration
from ovirt_placement.engine.writing.migration import Progress, Rejection, Watch
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import ImpossibleTransition, Intent, IntentState, Store

_log = logging.getLogger(__name__)

_ENDS = {
    Progress.RETURNED: "it is back on its source",
    Progress.ELSEWHERE: "it is on a third host: somebody else moved it",
    Progress.STOPPED: "the VM stopped",
    Progress.GONE: "the VM was removed",
}


class Executor:
    """Begins migrations and finds out how they ended."""

    def __init__(
        self,
        connection: EngineConnection,
        store: Store,
        settings: EnforcerSettings,
        clock: Callable[[], float],
        ended: Callable[[Intent], None] = lambda intent: None,
    ) -> None:
        """`clock` gives seconds that only grow; it measures how long a migration takes.

        `ended` is told of each migration whose end is known.
        """
        self._connection = connection
        self._store = store
        self._settings = settings
        self._clock = clock
        self._ended = ended
        self._watches: dict[int, Watch] = {}
        #: Names to log; of what a process before this one began there are only ids.
        self._names: dict[str, str] = {}
        #: Migrations of which it was said that they take long.
        self._late: set[int] = set()

    def begin(self, admitted: Admitted, snapshot: Snapshot) -> None:
        """Ask the engine for the migration of an admitted step.

        A refusal ends the intents as failed. Raises `EngineAway` or `EngineSetupError` if the engine cannot
        be asked, and `StoreAway` if the intent cannot be written: then it is not asked.
        """
        intents = self._prepare(admitted, snapshot)
        step, correlation_id = admitted.step, intents[0].correlation_id
        self._names.update({vm: snapshot.vm_by_id[vm].name for vm in step.vms})
        self._names[step.target] = snapshot.host_by_id[step.target].name
        try:
            migration.migrate(
                self._connection, step.vms[0], step.target, correlation_id, closure=step.closure
            )
        except Rejection as rejection:
            self._record(intents, self._store.fail, str(rejection).removesuffix("."))
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
            self._record(intents, self._store.lose, str(fault))
        else:
            self._record(intents, self._store.accept)

    def follow(self, intent: Intent) -> bool:
        """Look once at a migration that is not known to have ended; whether it is known now.

        Raises `EngineAway`, `EngineSetupError` or `StoreAway`; to call it again later is always right.
        """
        if intent.state is not IntentState.ACCEPTED and not self._confirmed(intent):
            return self._unconfirmed(intent)
        now = self._clock()
        before = self._watches.get(intent.id) or migration.watch(intent.source or "", intent.target, now)
        watch = self._watches[intent.id] = before.step(migration.read_vm(self._connection, intent.vm), now)
        if watch.progress is Progress.ARRIVED:
            self._record((intent,), self._store.finish)
        elif watch.ended:
            self._record((intent,), self._store.fail, self._why_failed(intent, _ENDS[watch.progress]))
        elif now - watch.accepted_at > self._settings.migration_timeout_seconds:
            self._warn(intent)
        return watch.ended

    def _prepare(self, admitted: Admitted, snapshot: Snapshot) -> list[Intent]:
        """Write down every VM of the step; the first one's correlation id goes to the engine."""
        correlation_id = uuid.uuid4().hex
        return [
            self._store.prepare(
                vm=vm,
                cluster=admitted.cluster,
                source=source,
                target=admitted.step.target,
                correlation_id=f"{correlation_id}-{number}" if number else correlation_id,
                memory_mb=snapshot.vm_by_id[vm].memory_mb,
            )
            for number, (vm, source) in enumerate(zip(admitted.step.vms, admitted.step.sources, strict=True))
        ]

    def _confirmed(self, intent: Intent) -> bool:
        """Whether the engine's events show that it began what we do not know to be accepted."""
        if not any(event.code in events.STARTED for event in self._events(intent)):
            return False
        self._record((intent,), self._store.accept)
        return True

    def _unconfirmed(self, intent: Intent) -> bool:
        """Wait until the engine must have shown that it accepted; after that, it has not."""
        seen = migration.read_vm(self._connection, intent.vm)
        if intent.age_seconds < self._settings.settle_seconds or (seen and seen.status == "migrating"):
            return False
        self._record((intent,), self._store.fail, self._why_failed(intent, NEVER_ASKED))
        return True

    def _events(self, intent: Intent) -> tuple[events.Event, ...]:
        correlation_id = intent.correlation_id.partition("-")[0]
        return events.find_migration_events(self._connection, correlation_id=correlation_id, vm_id=intent.vm)

    def _why_failed(self, intent: Intent, otherwise: str) -> str:
        """Give the engine's own words, where it has any."""
        said = [event.description for event in self._events(intent) if event.code in events.FAILED]
        return said[-1].strip().removesuffix(".") if said else otherwise

    def _record(self, intents: Iterable[Intent], transition: Callable[..., Intent], *error: str) -> None:
        """Record a transition of each intent; where somebody else has done so already, theirs stands."""
        for intent in intents:
            try:
                after = transition(intent.id, *error)
            except ImpossibleTransition as overtaken:
                _log.warning("%s: %s", self._title(intent), overtaken)
                continue
            _log.info("%s: %s%s", self._title(intent), after.state, "".join(f": {text}" for text in error))
            if not after.open:
                self._watches.pop(intent.id, None)
                self._ended(after)

    def _warn(self, intent: Intent) -> None:
        if intent.id not in self._late:
            self._late.add(intent.id)
            _log.warning("%s: it takes long; its cluster waits until it ends", self._title(intent))

    def _title(self, intent: Intent) -> str:
        vm, host = (self._names.get(name, name) for name in (intent.vm, intent.target))
        return f"migration of {vm} to {host} ({intent.correlation_id})"
