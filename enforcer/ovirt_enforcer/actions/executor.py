"""Carries out what is admitted: intent first, then the request; and follows each to its end.

The store holds the intent and the engine the truth: a process that dies at any point is followed by one that
compares the two.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from ovirt_enforcer.actions.following import OF_VMS, Following
from ovirt_enforcer.actions.recent_moves import digest
from ovirt_enforcer.gates.admission import Admitted, Observation
from ovirt_enforcer.log import LogText, report
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine import actions
from ovirt_placement.engine.actions import Rejection
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS, Dialogue, Dialogues, Outcome
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault, EngineSetupError
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.enforcer.intents import Cause, IntendedMigration, Intent, IntentKind, Store
from ovirt_placement.store.orders import Paused
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_placement.store.sql.database import StoreAway
from ovirt_service.repetition import Said

_HOST_REQUESTS: Final[dict[IntentKind, Callable[..., None]]] = {
    IntentKind.DEACTIVATE_HOST: actions.deactivate,
    IntentKind.UPGRADE_HOST: actions.upgrade,
    IntentKind.ACTIVATE_HOST: actions.activate,
    IntentKind.STOP_VM: actions.shut_down_vm,
    IntentKind.START_VM: actions.start_vm,
}


@dataclass(frozen=True, slots=True)
class Task:
    """A step, or an action on a host, to carry out: what it is of, and what it was decided on."""

    admitted: Admitted
    seen: Observation
    #: Of a step its plan, and its number there, from 1.
    plan: str | None = None
    number: int | None = None
    #: Whether a host is started again once it is upgraded.
    reboot: bool = True


class Stale(Exception):
    """What a step was decided on has grown too old to act on: the engine was not asked."""


#: What a dialogue is about: the cluster, the intent (of a request for several the first), whether it begins.
_Key = tuple[str, int, bool]


@dataclass(eq=False)
class Executor:
    """Writes intents down, sends their requests as long as that is right, and follows them; for one thread.

    A request that takes long holds up neither the thread nor any other request.
    """

    connection: EngineConnection
    store: Store
    settings: EnforcerSettings
    #: Seconds that only grow, also while the process is stopped.
    clock: Callable[[], float]
    #: Asked just before a request whether the epoch of its decision lasts.
    still_leads: Callable[[int], bool]
    began: Callable[[Iterable[Intent]], None] = lambda intents: None
    ended: Callable[[Intent], None] = lambda intent: None
    #: An answer that takes longer is taken in when it comes.
    patience_seconds: float = PATIENCE_SECONDS
    _requested: set[int] = field(default_factory=set, init=False)
    _said: Said = field(default_factory=Said, init=False)

    def __post_init__(self) -> None:
        self.following = Following(self.connection, self.store, self.settings, self.clock, self.ended)
        self._dialogues: Dialogues[_Key] = Dialogues(patience_seconds=self.patience_seconds)

    def observe(self, snapshot: Snapshot) -> None:
        self.following.latest = snapshot

    def begin(self, task: Task) -> tuple[Intent, ...]:
        """Ask the engine for what was admitted; return its intents as they are afterwards.

        Where the engine takes long to answer, they are as they were prepared, and `answers` gives the rest.

        A refusal ends them as failed. Raises `EngineAway` or `EngineSetupError` if the engine cannot be
        asked, `StoreAway` if the store cannot be, `LeaseLost` if another may lead by now, `Paused` if
        migrations are paused, and `Stale` if the snapshot has grown too old: with these four the
        engine is not asked.
        """
        intents = self.store.prepare(_intended(task), epoch=task.seen.epoch, paused_by=_paused_by(task))
        if intents[0].kind is IntentKind.MIGRATE_VM:
            self.began(intents)
        key = task.admitted.cluster, intents[0].id, True
        self._dialogues.begin(key, self._send_request(task, intents))
        self._dialogues.wait()
        outcome = self._dialogues.pop_ended(key)
        return intents if outcome is None else outcome.result()

    def follow(self, intents: Iterable[Intent]) -> None:
        """Look at migrations that are not known to have ended; `answers` gives what came of it."""
        self._begin_dialogues(
            (intent, self.following.follow(intent)) for intent in intents if intent.id not in self._requested
        )

    def follow_actions(self, intents: Iterable[Intent]) -> None:
        """Look once at actions; what became of them, the store shows. Raises `EngineAway` or `StoreAway`."""
        dialogues = [
            (one, self.following.follow_action(one)) for one in intents if one.id not in self._requested
        ]
        self._begin_dialogues(dialogues)
        for intent, _ in dialogues:
            outcome = self._dialogues.pop_ended((intent.cluster, intent.id, False))
            if outcome is not None and not outcome.late:
                outcome.result()

    def reconsider(self, history: Iterable[Intent], snapshot: Snapshot) -> None:
        """Reopen migrations that were given up and have started after all."""
        self._begin_dialogues(self.following.reconsider(history, snapshot))

    def answers(self) -> Iterator[tuple[str, Outcome]]:
        """What has come of requests and looks, each with its cluster; of intents, those that have changed."""
        for key, outcome in self._dialogues.pop_all_ended():
            if outcome.late and isinstance(outcome.error, EngineAway):
                # If the engine is away for all, the next reading of it says so.
                if self._said.is_news(key):
                    report(LogText.UNANSWERED, error=outcome.error)
                continue
            yield key[0], outcome

    def _begin_dialogues(self, dialogues: Iterable[tuple[Intent, Dialogue[Intent | None]]]) -> None:
        def as_changed(dialogue: Dialogue[Intent | None]) -> Dialogue[tuple[Intent, ...]]:
            ended = yield from dialogue
            return () if ended is None else (ended,)

        for intent, dialogue in dialogues:
            key = intent.cluster, intent.id, False
            if key not in self._dialogues:
                self._dialogues.begin(key, as_changed(dialogue))
        self._dialogues.wait()

    def _request(self, task: Task, intents: tuple[Intent, ...]) -> Callable[..., None]:
        what, correlation_id = task.admitted.what, intents[0].correlation_id
        if isinstance(what, Step):
            given = (self.connection, what.vms[0], self._chosen(what), correlation_id)
            return partial(actions.migrate, *given, closure=what.closure)
        subject = what.vm if what.kind in OF_VMS else what.host
        more: dict[str, Any] = {"reboot": task.reboot} if what.kind is IntentKind.UPGRADE_HOST else {}
        return partial(_HOST_REQUESTS[what.kind], self.connection, subject, correlation_id, **more)

    def _chosen(self, step: Step) -> str | None:
        return None if self.settings.target == "engine" else step.target

    def _rejected(self, task: Task, rejection: Rejection) -> tuple[Callable[..., Intent], Cause]:
        step = task.admitted.what
        if not isinstance(step, Step):
            return self.store.fail, Cause.TARGET_REFUSED
        chosen = self._chosen(step)
        # Of a group some may have gone before another was refused: their events will show it.
        transition = self.store.lose if step.closure else self.store.fail
        return transition, cause_of(rejection, chosen and host_name(chosen, task.seen.snapshot))

    def _send_request(self, task: Task, intents: tuple[Intent, ...]) -> Dialogue[tuple[Intent, ...]]:
        record, sent = self.following.record, False
        self._requested.update(intent.id for intent in intents)

        def check() -> None:
            nonlocal sent
            self._check(task)
            sent = True

        try:
            yield partial(self._request(task, intents), check=check)
        except Rejection as rejection:
            transition, cause = self._rejected(task, rejection)
            return record(intents, transition, str(rejection).removesuffix("."), cause)
        except (LeaseLost, StoreAway):
            raise  # it is the next leader's to record, or it cannot be now
        except (EngineAway, EngineSetupError, Stale, Paused) as obstacle:
            unreachable = isinstance(obstacle, EngineAway) and not obstacle.request_sent
            # That it never left this machine is sure before the check, and where that or a connection failed.
            if not sent or unreachable or isinstance(obstacle, Stale | Paused):
                record(intents, self.store.fail, None, Cause.NEVER_ASKED)
            else:
                record(intents, self.store.lose, str(obstacle))
            raise
        except EngineFault as fault:
            return record(intents, self.store.lose, str(fault))
        finally:
            self._requested.difference_update(intent.id for intent in intents)
        return record(intents, self.store.accept)

    def _check(self, task: Task) -> None:
        """Raise `LeaseLost`, `Stale`, `Paused` or `StoreAway`: a log-in may have taken time since."""
        if not self.still_leads(task.seen.epoch):
            raise LeaseLost(f"epoch {task.seen.epoch} of the lease is over: another may lead now")
        if self.clock() > task.seen.fresh_until:
            raise Stale("the engine's state is too old: the request was not sent")
        self.store.check_pauses(_paused_by(task))


def _paused_by(task: Task) -> tuple[str, str]:
    """What was paused while the engine was away may have the cluster's name in place of its id."""
    cluster = task.seen.snapshot.cluster_by_id[task.admitted.cluster]
    return cluster.id, cluster.name


def cause_of(rejection: Rejection, target_name: str | None) -> Cause:
    """What a refusal is about: the target, or the VM wherever it was to go.

    The engine's sentences are in its own language and release, so they are not read, but for one thing: that
    of a filter names the host that it is about. `target_name` is None where the engine was to choose one.
    """
    any_target = target_name is None or (rejection.of_all and target_name not in str(rejection))
    return Cause.VM_REFUSED if any_target else Cause.TARGET_REFUSED


def _intended(task: Task) -> Iterator[IntendedMigration]:
    """Every VM of a step; the first one's correlation id goes to the engine. Or the one action."""
    cluster, what, snapshot = task.admitted.cluster, task.admitted.what, task.seen.snapshot
    correlation_id = uuid.uuid4().hex
    if not isinstance(what, Step):
        yield IntendedMigration(
            kind=what.kind,
            vm=what.vm,
            cluster=cluster,
            source=None,
            target=what.host,
            correlation_id=correlation_id,
        )
        return
    for number, (vm, source) in enumerate(zip(what.vms, what.sources, strict=True)):
        yield IntendedMigration(
            vm=vm,
            cluster=cluster,
            source=source,
            target=what.target,
            correlation_id=f"{correlation_id}-{number}" if number else correlation_id,
            memory_mb=snapshot.vm_by_id[vm].memory_mb,
            plan=task.plan,
            step=task.number,
            fingerprint=digest(snapshot, vm, (source, what.target)),
        )
