"""Carries out what is admitted: intent first, then the request; and follows each to its end.

The store holds the intent and the engine the truth: a process that dies at any point is followed by one that
compares the two.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from ovirt_enforcer.actions.following import OF_VMS, Following
from ovirt_enforcer.actions.recent_moves import digest
from ovirt_enforcer.gates.admission import Admitted, AdmittedAction
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS, Dialogue, Dialogues, Outcome
from ovirt_placement.engine.writing import hosts, migration
from ovirt_placement.engine.writing.hosts import HostState
from ovirt_placement.engine.writing.migration import Conflict, PermissionDenied, Rejection
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name
from ovirt_placement.store.enforcer.causes import Cause
from ovirt_placement.store.enforcer.intents import IntendedMigration, Intent, IntentKind, Store
from ovirt_placement.store.pauses import Paused
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_placement.store.sql.database import StoreAway
from ovirt_service.text.saying import Said

_HOST_REQUESTS: Final[dict[IntentKind, Callable[..., None]]] = {
    IntentKind.DEACTIVATE_HOST: hosts.deactivate,
    IntentKind.UPGRADE_HOST: hosts.upgrade,
    IntentKind.ACTIVATE_HOST: hosts.activate,
    IntentKind.STOP_VM: hosts.shut_down_vm,
    IntentKind.START_VM: hosts.start_vm,
}

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


@dataclass(frozen=True, slots=True)
class ActionTask:
    """An action on a host to carry out, and what it was decided on, as for a migration."""

    admitted: AdmittedAction
    snapshot: Snapshot
    epoch: int
    fresh_until: float
    reboot: bool = True


class Stale(Exception):
    """What a step was decided on has grown too old to act on: the engine was not asked."""


class _Key(NamedTuple):
    """What a dialogue with the engine is about."""

    cluster: str
    #: A migration, by its intent's id; or a request that may be for several, by the id of its first intent.
    intent: int
    begins: bool


class Executor:
    """Writes intents down, sends their requests as long as that is right, and follows them; for one thread.

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
        the migrations that are about to be asked for, `ended` each whose end is known. An answer that takes
        longer than `patience_seconds` is taken in when it comes.
        """
        self._connection = connection
        self._store = store
        self._settings = settings
        self._clock = clock
        self._still_leads = still_leads
        self._began = began
        self._following = Following(connection, store, settings, clock, ended)
        self._dialogues: Dialogues[_Key] = Dialogues(patience_seconds=patience_seconds)
        #: Ids of intents whose requests are not answered yet.
        self._requested: set[int] = set()
        self._said = Said()

    def observe(self, snapshot: Snapshot) -> None:
        """Learn the names of VMs and hosts."""
        self._following.observe(snapshot)

    def read_host(self, host: str) -> HostState | None:
        """Read a host now. Raises what `EngineConnection.get` raises."""
        return hosts.read_host(self._connection, host)

    def begin(self, task: MigrationTask | ActionTask) -> tuple[Intent, ...]:
        """Ask the engine for what was admitted; return its intents as they are afterwards.

        Where the engine takes long to answer, they are as they were prepared, and `answers` gives the rest.

        A refusal ends them as failed. Raises `EngineAway` or `EngineSetupError` if the engine cannot be
        asked, `StoreAway` if the store cannot be, `LeaseLost` if another may lead by now, `Paused` if
        migrations are paused, and `Stale` if the snapshot has grown too old: with these four the
        engine is not asked.
        """
        if isinstance(task, MigrationTask):
            intents = self._prepare(task, *_intended(task))
            self._began(intents)
            request = self._migration(task, intents)
        else:
            intents = self._prepare(task, _intended_action(task))
            request = self._action(task, intents)
        key = _Key(task.admitted.cluster, intents[0].id, begins=True)
        self._dialogues.begin(key, request)
        self._dialogues.wait()
        outcome = self._dialogues.take_one(key)
        return intents if outcome is None else outcome.result()

    def follow(self, intents: Iterable[Intent]) -> None:
        """Look at migrations that are not known to have ended; `answers` gives what came of it."""
        self._look_at(
            (intent, self._following.follow(intent)) for intent in intents if intent.id not in self._requested
        )

    def follow_actions(self, intents: Iterable[Intent]) -> None:
        """Look once at actions; what became of them, the store shows. Raises `EngineAway` or `StoreAway`."""
        looks = [
            (one, self._following.follow_action(one)) for one in intents if one.id not in self._requested
        ]
        self._look_at(looks)
        for intent, _ in looks:
            outcome = self._dialogues.take_one(_Key(intent.cluster, intent.id, begins=False))
            if outcome is not None and not outcome.late:
                outcome.result()

    def reconsider(self, history: Iterable[Intent], snapshot: Snapshot) -> None:
        """Reopen migrations that were given up and have started after all."""
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
        def as_changed(dialogue: Dialogue[Intent | None]) -> Dialogue[tuple[Intent, ...]]:
            ended = yield from dialogue
            return () if ended is None else (ended,)

        for intent, dialogue in looks:
            key = _Key(intent.cluster, intent.id, begins=False)
            if key not in self._dialogues:
                self._dialogues.begin(key, as_changed(dialogue))
        self._dialogues.wait()

    def _prepare(self, task: MigrationTask | ActionTask, *intended: IntendedMigration) -> tuple[Intent, ...]:
        return self._store.prepare(intended, epoch=task.epoch, paused_by=_paused_by(task))

    def _migration(self, task: MigrationTask, intents: tuple[Intent, ...]) -> Dialogue[tuple[Intent, ...]]:
        step = task.admitted.step
        chosen = None if self._settings.target == "engine" else step.target

        def rejected(rejection: Rejection) -> tuple[Callable[..., Intent], Cause]:
            # Of a group some may have gone before another was refused: their events will show it.
            transition = self._store.lose if step.closure else self._store.fail
            return transition, cause_of(rejection, chosen and host_name(chosen, task.snapshot))

        request = partial(
            migration.migrate,
            self._connection,
            step.vms[0],
            chosen,
            intents[0].correlation_id,
            closure=step.closure,
        )
        return self._send_request(task, intents, request, rejected)

    def _action(self, task: ActionTask, intents: tuple[Intent, ...]) -> Dialogue[tuple[Intent, ...]]:
        action = task.admitted.action
        more: dict[str, Any] = {"reboot": task.reboot} if action.kind is IntentKind.UPGRADE_HOST else {}
        request = partial(
            _HOST_REQUESTS[action.kind],
            self._connection,
            action.vm if action.kind in OF_VMS else action.host,
            intents[0].correlation_id,
            **more,
        )
        return self._send_request(
            task, intents, request, lambda rejection: (self._store.fail, Cause.TARGET_REFUSED)
        )

    def _send_request(
        self,
        task: MigrationTask | ActionTask,
        intents: tuple[Intent, ...],
        request: Callable[..., None],
        rejected: Callable[[Rejection], tuple[Callable[..., Intent], Cause]],
    ) -> Dialogue[tuple[Intent, ...]]:
        """Send the request of intents, and record its answer; `rejected` says how a refusal is recorded."""
        record, sent = self._following.record, False
        self._requested.update(intent.id for intent in intents)

        def check() -> None:
            nonlocal sent
            self._check(task)
            sent = True

        try:
            yield partial(request, check=check)
        except Rejection as rejection:
            transition, cause = rejected(rejection)
            return record(intents, transition, str(rejection).removesuffix("."), cause)
        except (LeaseLost, StoreAway):
            raise  # it is the next leader's to record, or it cannot be now
        except (EngineAway, EngineSetupError, Stale, Paused) as obstacle:
            unreachable = isinstance(obstacle, EngineAway) and not obstacle.request_sent
            # That it never left this machine is sure before the check, and where that or a connection failed.
            if not sent or unreachable or isinstance(obstacle, Stale | Paused):
                record(intents, self._store.fail, None, Cause.NEVER_ASKED)
            else:
                record(intents, self._store.lose, str(obstacle))
            raise
        except EngineFault as fault:
            return record(intents, self._store.lose, str(fault))
        finally:
            self._requested.difference_update(intent.id for intent in intents)
        return record(intents, self._store.accept)

    def _check(self, task: MigrationTask | ActionTask) -> None:
        """Raise `LeaseLost`, `Stale`, `Paused` or `StoreAway` if a request must not be sent any more.

        A log-in and much else may have taken time since the intents were written.
        """
        if not self._still_leads(task.epoch):
            raise LeaseLost(f"epoch {task.epoch} of the lease is over: another may lead now")
        if self._clock() > task.fresh_until:
            raise Stale("the engine's state is too old: the request was not sent")
        self._store.check_pauses(_paused_by(task))


def _paused_by(task: MigrationTask | ActionTask) -> tuple[str, str]:
    """What was paused while the engine was away may have the cluster's name in place of its id."""
    cluster = task.snapshot.cluster_by_id[task.admitted.cluster]
    return cluster.id, cluster.name


def cause_of(rejection: Rejection, target_name: str | None) -> Cause:
    """What a refusal is about: the target, or the VM wherever it was to go.

    The engine's sentences are in its own language and release, so they are not read, but for one thing: that
    of a filter names the host that it is about. `target_name` is None where the engine was to choose one.
    """
    of_all = isinstance(rejection, Conflict | PermissionDenied)
    any_target = target_name is None or (of_all and target_name not in str(rejection))
    return Cause.VM_REFUSED if any_target else Cause.TARGET_REFUSED


def _intended(task: MigrationTask) -> Iterator[IntendedMigration]:
    """Every VM of the step; the first one's correlation id goes to the engine."""
    correlation_id = uuid.uuid4().hex
    step, snapshot = task.admitted.step, task.snapshot
    for number, (vm, source) in enumerate(zip(step.vms, step.sources, strict=True)):
        yield IntendedMigration(
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


def _intended_action(task: ActionTask) -> IntendedMigration:
    return IntendedMigration(
        kind=task.admitted.action.kind,
        vm=task.admitted.action.vm,
        cluster=task.admitted.cluster,
        source=None,
        target=task.admitted.action.host,
        correlation_id=uuid.uuid4().hex,
    )
