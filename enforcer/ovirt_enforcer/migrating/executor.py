"""Carries out admitted steps: intent first, then the request; `following` finds out how it ends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ovirt_enforcer.gates.admission import Admitted
from ovirt_enforcer.gates.history import NEVER_ASKED
from ovirt_enforcer.migrating.circumstances import digest
from ovirt_enforcer.migrating.following import Following
from ovirt_enforcer.migrating.refusals import error_of
from ovirt_enforcer.migrating.transitions import Transitions
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.names import host_name
from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.writing import migration
from ovirt_placement.engine.writing.migration import Rejection
from ovirt_placement.model import Snapshot
from ovirt_placement.store.fencing import LeaseLost
from ovirt_placement.store.intents import IntendedMigration, Intent, Store, StoreAway
from ovirt_placement.store.pauses import Paused


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
    #: Until when the snapshot is young enough to act on, by the executor's clock.
    fresh_until: float


class Stale(Exception):
    """What a step was decided on has grown too old to act on: the engine was not asked."""


class Executor:
    """Begins migrations."""

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
        """`clock` gives seconds that only grow, also while the process is stopped.

        `still_leads` is asked just before a request whether the epoch of its decision lasts. `began` is told
        of what is about to be asked for, `ended` of each migration whose end is known.
        """
        self._connection = connection
        self._store = store
        self._settings = settings
        self._clock = clock
        self._still_leads = still_leads
        self._began = began
        self._transitions = Transitions(store, ended)
        self.following = Following(connection, self._transitions, settings, clock)

    def look(self, snapshot: Snapshot) -> None:
        """Learn the names of VMs and hosts."""
        self._transitions.look(snapshot)

    def begin(self, task: Task) -> tuple[Intent, ...]:
        """Ask the engine for the migration of an admitted step; return its intents as they are afterwards.

        A refusal ends them as failed. Raises `EngineAway` or `EngineSetupError` if the engine cannot be
        asked, `StoreAway` if the store cannot be, `LeaseLost` if another may lead by now, `Paused` if
        somebody has migrations paused, and `Stale` if the snapshot has grown too old: with these four the
        engine is not asked.
        """
        intents = self._prepare(task)
        self._began(intents)
        step, record = task.admitted.step, self._transitions.record
        chosen = None if self._settings.target == "engine" else step.target
        sent = False

        def check() -> None:
            nonlocal sent
            self._check(task)
            sent = True

        try:
            migration.migrate(
                self._connection,
                step.vms[0],
                chosen,
                intents[0].correlation_id,
                closure=step.closure,
                check=check,
            )
        except Rejection as rejection:
            error = error_of(rejection, chosen and host_name(chosen, task.snapshot))
            # Of a group some may have gone before another was refused: their events will tell.
            return record(intents, self._store.lose if step.closure else self._store.fail, error)
        except (EngineAway, EngineSetupError, Stale, LeaseLost, Paused, StoreAway) as obstacle:
            self._record_unanswered(intents, obstacle, sent)
            raise
        except EngineFault as fault:
            return record(intents, self._store.lose, str(fault))
        return record(intents, self._store.accept)

    def _record_unanswered(self, intents: Iterable[Intent], obstacle: Exception, sent: bool) -> None:
        """Record that the request never left this machine, where that is sure; else nobody knows its end.

        It may have been `sent` once the check before that was passed.
        """
        if not isinstance(obstacle, EngineAway | EngineSetupError):
            self._connection.forget()  # which holds the request still
        if isinstance(obstacle, LeaseLost | StoreAway):
            return  # it is the next leader's to record, or it cannot be now
        unreachable = isinstance(obstacle, EngineAway) and not obstacle.request_sent
        if unreachable or not sent or isinstance(obstacle, Stale | Paused):
            self._transitions.record(intents, self._store.fail, NEVER_ASKED)
        else:
            self._transitions.record(intents, self._store.lose, str(obstacle))

    def _check(self, task: Task) -> None:
        """Raise `LeaseLost`, `Stale`, `Paused` or `StoreAway` if a request must not be sent any more.

        A log-in and much else may have taken time since the intents were written.
        """
        if not self._still_leads(task.epoch):
            raise LeaseLost(f"epoch {task.epoch} of the lease is over: another may lead now")
        if self._clock() > task.fresh_until:
            raise Stale("what was read of the engine has grown too old before the request could be sent")
        self._store.check_pauses(_paused_by(task))

    def _prepare(self, task: Task) -> tuple[Intent, ...]:
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
                circumstances=digest(snapshot, vm, (source, step.target)),
            )
            for number, (vm, source) in enumerate(zip(step.vms, step.sources, strict=True))
        ]
        return self._store.prepare(migrations, epoch=task.epoch, paused_by=_paused_by(task))


def _paused_by(task: Task) -> tuple[str, str]:
    """What was paused while the engine was away may have the cluster's name in place of its id."""
    cluster = task.snapshot.cluster_by_id[task.admitted.cluster]
    return cluster.id, cluster.name
