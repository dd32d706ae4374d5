"""Carries out admitted actions on hosts: intent first, then the request; and follows each to its end.

As with migrations, the store holds the intent and the engine the truth: a process that dies at any point is
followed by one that compares the two.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ovirt_enforcer.actions.host.progress import Progress, progress_of_host, progress_of_vm
from ovirt_enforcer.actions.migrate_vm.executor import Stale
from ovirt_enforcer.actions.migrate_vm.transitions import Transitions
from ovirt_enforcer.gates.admission import AdmittedAction
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import (
    EngineAway,
    EngineConnection,
    EngineFault,
    EngineSetupError,
)
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS, Dialogue, Dialogues
from ovirt_placement.engine.writing import hosts, migration
from ovirt_placement.engine.writing.hosts import HostState
from ovirt_placement.engine.writing.migration import Rejection
from ovirt_placement.model import Snapshot
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.fencing import LeaseLost
from ovirt_placement.store.intents import IntendedMigration, Intent, IntentKind, IntentState, Store, StoreAway
from ovirt_placement.store.pauses import Paused

_OF_VMS: Final = (IntentKind.STOP_VM, IntentKind.START_VM)
_REQUESTS: Final[dict[IntentKind, Callable[..., None]]] = {
    IntentKind.DEACTIVATE_HOST: hosts.deactivate,
    IntentKind.UPGRADE_HOST: hosts.upgrade,
    IntentKind.ACTIVATE_HOST: hosts.activate,
    IntentKind.STOP_VM: hosts.shut_down_vm,
    IntentKind.START_VM: hosts.start_vm,
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ActionTask:
    """An action to carry out, and what it was decided on."""

    admitted: AdmittedAction
    snapshot: Snapshot
    #: Of the lease, from before the snapshot was read.
    epoch: int
    #: Until when the snapshot is young enough to act on, by the executor's clock.
    fresh_until: float
    reboot: bool = True


class HostExecutor:
    """Begins actions on hosts, and follows them to their ends; for one thread."""

    def __init__(
        self,
        connection: EngineConnection,
        store: Store,
        settings: EnforcerSettings,
        clock: Callable[[], float],
        still_leads: Callable[[int], bool],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """As an executor of migrations."""
        self._connection = connection
        self._store = store
        self._settings = settings
        self._clock = clock
        self._still_leads = still_leads
        self._transitions = Transitions(store, lambda intent: None)
        self._dialogues: Dialogues[int] = Dialogues(patience_seconds=patience_seconds)
        #: What was read of hosts last, by id.
        self.hosts: dict[str, HostState | None] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Learn the names of VMs and hosts."""
        self._transitions.look(snapshot)

    def read(self, host: str) -> HostState | None:
        """Read a host now. Raises what `EngineConnection.get` raises."""
        return hosts.read_host(self._connection, host)

    def begin(self, task: ActionTask) -> None:
        """Write an action down and ask the engine for it; what becomes of it, the store shows.

        A refusal ends it as failed. Raises what an executor of migrations raises.
        """
        (intent,) = self._prepare(task)
        self._dialogues.begin(intent.id, self._request(task, intent))
        self._take()

    def follow(self, intents: Iterable[Intent]) -> None:
        """Look once at each action that is not known to have ended. Raises `EngineAway` or `StoreAway`."""
        for intent in intents:
            if intent.id not in self._dialogues:
                self._dialogues.begin(intent.id, self._follow(intent))
        self._take()

    def _take(self) -> None:
        self._dialogues.wait()
        for _, outcome in self._dialogues.take():
            if outcome.error is not None and not outcome.late:
                raise outcome.error

    def _request(self, task: ActionTask, intent: Intent) -> Dialogue[None]:
        action, sent = task.admitted.action, False

        def check() -> None:
            nonlocal sent
            self._check(task)
            sent = True

        more: dict[str, Any] = {"reboot": task.reboot} if action.kind is IntentKind.UPGRADE_HOST else {}
        subject = action.vm if action.kind in _OF_VMS else action.host
        try:
            ask = _REQUESTS[action.kind]
            yield partial(ask, self._connection, subject, intent.correlation_id, check, **more)
        except Rejection as rejection:
            self._end(intent, self._store.fail, str(rejection).removesuffix("."), Cause.TARGET_REFUSED)
        except (LeaseLost, StoreAway):
            raise  # it is the next leader's to record, or it cannot be now
        except (EngineAway, EngineSetupError, Stale, Paused) as obstacle:
            unreachable = isinstance(obstacle, EngineAway) and not obstacle.request_sent
            if unreachable or not sent:
                self._end(intent, self._store.fail, None, Cause.NEVER_ASKED)
            else:
                self._end(intent, self._store.lose, str(obstacle))
            raise
        except EngineFault as fault:
            self._end(intent, self._store.lose, str(fault))
        else:
            self._end(intent, self._store.accept)

    def _follow(self, intent: Intent) -> Dialogue[None]:
        progress = yield from self._progress(intent)
        accepted = intent.state is IntentState.ACCEPTED
        if progress is Progress.NOT_BEGUN:
            if intent.age_seconds >= self._settings.settle_seconds:
                cause = None if accepted else Cause.NO_TRACE
                self._end(intent, self._store.fail, "it had no effect" if accepted else intent.error, cause)
            return
        if not accepted:
            self._end(intent, self._store.accept)
        if progress is Progress.DONE:
            self._end(intent, self._store.finish)
        elif progress is Progress.FAILED:
            state = self.hosts.get(intent.target)
            self._end(intent, self._store.fail, f"the host is {state.status if state else 'gone'}")

    def _progress(self, intent: Intent) -> Dialogue[Progress]:
        if intent.kind in _OF_VMS:
            vm = yield partial(migration.read_vm, self._connection, intent.vm)
            return progress_of_vm(intent.kind, vm)
        host = yield partial(hosts.read_host, self._connection, intent.target)
        self.hosts[intent.target] = host
        return progress_of_host(intent.kind, host)

    def _end(self, intent: Intent, transition: Callable[..., Intent], *why: str | None) -> None:
        self._transitions.record((intent,), transition, *why)

    def _check(self, task: ActionTask) -> None:
        """Raise `LeaseLost`, `Stale`, `Paused` or `StoreAway` if the request must not be sent any more."""
        if not self._still_leads(task.epoch):
            raise LeaseLost(f"epoch {task.epoch} of the lease is over: another may lead now")
        if self._clock() > task.fresh_until:
            raise Stale("what was read of the engine has grown too old before the request could be sent")
        self._store.check_pauses(_paused_by(task))

    def _prepare(self, task: ActionTask) -> tuple[Intent, ...]:
        action = task.admitted.action
        intended = IntendedMigration(
            kind=action.kind,
            vm=action.vm,
            cluster=task.admitted.cluster,
            source=None,
            target=action.host,
            correlation_id=uuid.uuid4().hex,
        )
        return self._store.prepare((intended,), epoch=task.epoch, paused_by=_paused_by(task))


def _paused_by(task: ActionTask) -> tuple[str, str]:
    """What was paused while the engine was away may have the cluster's name in place of its id."""
    cluster = task.snapshot.cluster_by_id[task.admitted.cluster]
    return cluster.id, cluster.name
