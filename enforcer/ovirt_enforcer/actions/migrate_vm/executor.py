"""Carries out admitted steps: intent first, then the request; `following` finds out how it ends."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ovirt_enforcer.actions.migrate_vm.fingerprint import digest
from ovirt_enforcer.actions.migrate_vm.following import Following
from ovirt_enforcer.actions.migrate_vm.refusals import cause_of
from ovirt_enforcer.actions.migrate_vm.transitions import Transitions
from ovirt_enforcer.gates.admission import Admitted
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS, Dialogue, Dialogues, Outcome
from ovirt_placement.engine.writing import migration
from ovirt_placement.engine.writing.migration import Rejection
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.fencing import LeaseLost
from ovirt_placement.store.intents import IntendedMigration, Intent, Store, StoreAway
from ovirt_placement.store.pauses import Paused
from ovirt_service.saying import Said

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MigrationTask:
    """A step to carry out: what it is of, and what it was decided on."""

    admitted: Admitted
    plan: str
    #: From 1.
    number: int
    snapshot: Snapshot
    #: Of the lease, from before the snapshot was read.
    epoch: int
    #: Until when the snapshot is young enough to act on, by the executor's clock.
    fresh_until: float


class Stale(Exception):
    """What a step was decided on has grown too old to act on: the engine was not asked."""


class _Key(NamedTuple):
    """What a dialogue with the engine is about."""

    cluster: str
    #: A migration, by its intent's id; or a request that may be for several, by the id of its first intent.
    intent: int
    begins: bool


class Executor:
    """Begins migrations, and follows them to their ends; for one thread.

    A request that takes long holds up neither the thread nor any other request.
    """

    def __init__(
        self,
        connection: EngineConnection,
        store: Store,
        settings: EnforcerSettings,
        clock: Callable[[], float],
        still_leads: Callable[[int], bool],
        began: Callable[[Iterable[Intent]], None] = lambda intents: None,
        ended: Callable[[Intent], None] = lambda intent: None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`clock` gives seconds that only grow, also while the process is stopped.

        `still_leads` is asked just before a request whether the epoch of its decision lasts. `began` gets
        what is about to be asked for, `ended` each migration whose end is known. An answer that takes longer
        than `patience_seconds` is taken in when it comes.
        """
        self._connection = connection
        self._store = store
        self._settings = settings
        self._clock = clock
        self._still_leads = still_leads
        self._began = began
        self._transitions = Transitions(store, ended)
        self._following = Following(connection, self._transitions, settings, clock)
        self._dialogues: Dialogues[_Key] = Dialogues(patience_seconds=patience_seconds)
        #: Ids of intents whose requests are not answered yet.
        self._requested: set[int] = set()
        self._said = Said()

    def look(self, snapshot: Snapshot) -> None:
        """Learn the names of VMs and hosts."""
        self._transitions.look(snapshot)

    def begin(self, task: MigrationTask) -> tuple[Intent, ...]:
        """Ask the engine for the migration of an admitted step; return its intents as they are afterwards.

        Where the engine takes long to answer, they are as they were prepared, and `answers` gives the rest.

        A refusal ends them as failed. Raises `EngineAway` or `EngineSetupError` if the engine cannot be
        asked, `StoreAway` if the store cannot be, `LeaseLost` if another may lead by now, `Paused` if
        somebody has migrations paused, and `Stale` if the snapshot has grown too old: with these four the
        engine is not asked.
        """
        intents = self._prepare(task)
        self._began(intents)
        key = _Key(task.admitted.cluster, intents[0].id, begins=True)
        self._dialogues.begin(key, self._request(task, intents))
        self._dialogues.wait()
        outcome = self._dialogues.take_one(key)
        return intents if outcome is None else outcome.result()

    def follow(self, intents: Iterable[Intent]) -> None:
        """Look at migrations that are not known to have ended; `answers` gives what came of it."""
        self._look_at(
            (intent, self._following.follow(intent)) for intent in intents if intent.id not in self._requested
        )

    def reconsider(self, history: Iterable[Intent], snapshot: Snapshot) -> None:
        """Follow again what was given up without a trace, and turns out to have begun nevertheless."""
        self._look_at(self._following.reconsider(history, snapshot))

    def keep_only(self, open_intents: Collection[Intent]) -> None:
        """Forget what was seen of other migrations: they have ended."""
        self._following.keep_only(open_intents)

    def answers(self) -> Iterator[tuple[str, Outcome]]:
        """What has come of requests and looks since this was asked last, each with its cluster.

        A result is the intents as they are now, of those whose state has changed.
        """
        for key, outcome in self._dialogues.take():
            if outcome.late and isinstance(outcome.error, EngineAway):
                # If the engine is away for all, the next reading of it says so.
                if self._said.is_news(key):
                    _log.warning("a request about one migration was not answered: %s", outcome.error)
                continue
            yield key.cluster, outcome

    def _look_at(self, looks: Iterable[tuple[Intent, Dialogue[Intent | None]]]) -> None:
        for intent, dialogue in looks:
            key = _Key(intent.cluster, intent.id, begins=False)
            if key not in self._dialogues:
                self._dialogues.begin(key, _as_changed(dialogue))
        self._dialogues.wait()

    def _request(self, task: MigrationTask, intents: tuple[Intent, ...]) -> Dialogue[tuple[Intent, ...]]:
        step, record = task.admitted.step, self._transitions.record
        chosen = None if self._settings.target == "engine" else step.target
        sent = False

        def check() -> None:
            nonlocal sent
            self._check(task)
            sent = True

        self._requested.update(intent.id for intent in intents)
        try:
            yield partial(
                migration.migrate,
                self._connection,
                step.vms[0],
                chosen,
                intents[0].correlation_id,
                closure=step.closure,
                check=check,
            )
        except Rejection as rejection:
            cause = cause_of(rejection, chosen and host_name(chosen, task.snapshot))
            # Of a group some may have gone before another was refused: their events will show it.
            transition = self._store.lose if step.closure else self._store.fail
            return record(intents, transition, str(rejection).removesuffix("."), cause)
        except (EngineAway, EngineSetupError, Stale, LeaseLost, Paused, StoreAway) as obstacle:
            self._record_unanswered(intents, obstacle, sent)
            raise
        except EngineFault as fault:
            return record(intents, self._store.lose, str(fault))
        finally:
            self._requested.difference_update(intent.id for intent in intents)
        return record(intents, self._store.accept)

    def _record_unanswered(self, intents: Iterable[Intent], obstacle: Exception, sent: bool) -> None:
        """Record that the request never left this machine, where that is sure; else nobody knows its end.

        It may have been `sent` once the check before that was passed.
        """
        if isinstance(obstacle, LeaseLost | StoreAway):
            return  # it is the next leader's to record, or it cannot be now
        unreachable = isinstance(obstacle, EngineAway) and not obstacle.request_sent
        if unreachable or not sent or isinstance(obstacle, Stale | Paused):
            self._transitions.record(intents, self._store.fail, None, Cause.NEVER_ASKED)
        else:
            self._transitions.record(intents, self._store.lose, str(obstacle))

    def _check(self, task: MigrationTask) -> None:
        """Raise `LeaseLost`, `Stale`, `Paused` or `StoreAway` if a request must not be sent any more.

        A log-in and much else may have taken time since the intents were written.
        """
        if not self._still_leads(task.epoch):
            raise LeaseLost(f"epoch {task.epoch} of the lease is over: another may lead now")
        if self._clock() > task.fresh_until:
            raise Stale("what was read of the engine has grown too old before the request could be sent")
        self._store.check_pauses(_paused_by(task))

    def _prepare(self, task: MigrationTask) -> tuple[Intent, ...]:
        """Write down every VM of the step; the first one's correlation id goes to the engine."""
        correlation_id = uuid.uuid4().hex
        step, snapshot = task.admitted.step, task.snapshot
        migrations = [
            IntendedMigration(
                vm=vm,
                cluster=task.admitted.cluster,
                source=source,
                target=step.target,
                correlation_id=f"{correlation_id}-{number}" if number else correlation_id,
                memory_mb=snapshot.vm_by_id[vm].memory_mb,
                plan=task.plan,
                step=task.number,
                fingerprint=digest(snapshot, vm, (source, step.target)),
            )
            for number, (vm, source) in enumerate(zip(step.vms, step.sources, strict=True))
        ]
        return self._store.prepare(migrations, epoch=task.epoch, paused_by=_paused_by(task))


def _paused_by(task: MigrationTask) -> tuple[str, str]:
    """What was paused while the engine was away may have the cluster's name in place of its id."""
    cluster = task.snapshot.cluster_by_id[task.admitted.cluster]
    return cluster.id, cluster.name


def _as_changed(dialogue: Dialogue[Intent | None]) -> Dialogue[tuple[Intent, ...]]:
    ended = yield from dialogue
    return () if ended is None else (ended,)
