"""Follows each request to its end: what the engine shows of it is true, whatever the store believes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final

from ovirt_enforcer.log import LogText, report
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine import actions, events, requests
from ovirt_placement.engine.actions import HostState, Progress, VmState, Watch
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.dialogues import Dialogue
from ovirt_placement.model import NO_STATE, Snapshot
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.store.enforcer.intents import (
    REFUSALS,
    Cause,
    ImpossibleTransition,
    Intent,
    IntentKind,
    IntentState,
    Store,
)


def _event_text(connection: EngineConnection, intent: Intent, codes: Collection[int]) -> str | None:
    """What the engine's last event of these codes says of it; None without any."""
    found = events.find_migration_events(connection, intent.vm, intent.request_id)
    said = [event.description for event in found if event.code in codes]
    return said[-1].strip().removesuffix(".") if said else None


#: A VM is not believed to be gone, or a migration never to have begun, before this many looks say so.
_LEAST_BLANKS: Final = 2
#: For so long after it was given up a migration may turn out to have begun nevertheless.
_RECONSIDERED_SECONDS: Final = 3600.0
_Why = tuple[str | None, Cause | None]
_ENDS: Final = {
    Progress.RETURNED: "it is back on its source",
    Progress.ELSEWHERE: "it is on a third host: the engine or a user moved it",
    Progress.STOPPED: "the VM stopped",
    Progress.GONE: "the VM was removed",
}


@dataclass(slots=True)
class _Noted:
    """What was seen of a migration under way; after a restart it is found out again."""

    #: When it was first looked at, by the process's clock: the database's may be set back.
    since: float
    watch: Watch | None = None
    #: Looks in a row that showed no such VM, or no trace of the migration.
    blanks: int = 0
    late: bool = False

    def is_sure(self) -> bool:
        """Count a look that showed nothing; whether there were enough of them."""
        self.blanks += 1
        return self.blanks >= _LEAST_BLANKS


@dataclass(eq=False)
class Following:
    """Finds out how migrations ended, after a poll or after a restart, and records all transitions."""

    connection: EngineConnection
    store: Store
    settings: EnforcerSettings
    clock: Callable[[], float]
    ended: Callable[[Intent], None]
    latest: Snapshot = NO_STATE
    _noted: dict[int, _Noted] = field(default_factory=dict, init=False)
    #: Migrations that were given up without a trace, with where the VM was when that was asked again.
    _reconsidered: dict[int, tuple[str | None, str]] = field(default_factory=dict, init=False)

    def record(
        self, intents: Iterable[Intent], transition: Callable[..., Intent], *why: str | None
    ) -> tuple[Intent, ...]:
        """Record a transition of each intent; one that another process has made stands."""
        recorded = []
        for intent in intents:
            try:
                after = transition(intent.id, *why)
            except ImpossibleTransition as overtaken:
                report(LogText.OVERTAKEN, intent=self._title(intent), why=overtaken)
                continue
            state = ": ".join(filter(None, (after.state, after.reason)))
            report(LogText.TRANSITION, intent=self._title(after), state=state)
            recorded.append(after)
            if not after.open and after.kind is IntentKind.MIGRATE_VM:
                self.ended(after)
        return tuple(recorded)

    def _record_end(
        self, intent: Intent, transition: Callable[..., Intent], *why: str | None
    ) -> Intent | None:
        return next(iter(self.record((intent,), transition, *why)), None)

    def _title(self, intent: Intent) -> str:
        vm, host = vm_name(intent.vm, self.latest), host_name(intent.target, self.latest)
        return f"{intent.kind.text.format(vm=vm, host=host)} ({intent.correlation_id})"

    def keep_only(self, open_intents: Collection[Intent]) -> None:
        for gone in self._noted.keys() - {intent.id for intent in open_intents}:
            del self._noted[gone]

    def follow(self, intent: Intent) -> Dialogue[Intent | None]:
        """Look once at a migration that is not known to have ended; return it once it is.

        Raises `EngineAway`, `EngineSetupError` or `StoreAway`; to hold it again later is always right.
        """
        noted = self._noted.setdefault(intent.id, _Noted(self.clock()))
        if intent.state is not IntentState.ACCEPTED:
            confirmed = yield from self._confirmed(intent)
            if not confirmed:
                return (yield from self._unconfirmed(intent, noted))
        now = self.clock()
        before = noted.watch or Watch(intent.source or "", intent.target, now)
        seen = yield self._read(intent)
        if seen is None and not noted.is_sure():
            return None
        noted.blanks = 0
        watch = noted.watch = before.step(seen, now)
        if watch.progress is Progress.ARRIVED:
            return self._record_end(intent, self.store.finish)
        if watch.progress is Progress.ELSEWHERE and self.settings.target == "engine":
            chosen = intent.target if seen is None or seen.host is None else seen.host
            return self._record_end(intent, lambda known: self.store.finish(known, chosen))
        if watch.ended:
            # It may have arrived between two looks, and been stopped or moved on since.
            arrived = yield partial(_event_text, self.connection, intent, events.DONE)
            if arrived is not None:
                return self._record_end(intent, self.store.finish)
            said = yield partial(_event_text, self.connection, intent, events.FAILED)
            return self._record_end(intent, self.store.fail, said or _ENDS[watch.progress])
        if now - watch.accepted_at > self.settings.migration_timeout_seconds and not noted.late:
            noted.late = True
            report(LogText.LATE, intent=self._title(intent))
        return None

    def reconsider(
        self, history: Iterable[Intent], snapshot: Snapshot
    ) -> Iterator[tuple[Intent, Dialogue[Intent | None]]]:
        """Reopen migrations that were given up and have started after all.

        The engine is asked once wherever such a VM is known to move, or to be elsewhere than it was.
        """
        for intent in history:
            vm = snapshot.vm_by_id.get(intent.vm)
            lately = intent.cause is Cause.NO_TRACE and intent.age_seconds < _RECONSIDERED_SECONDS
            if vm is None or not lately or (vm.host, vm.status) == (intent.source, "up"):
                continue
            place = vm.host, vm.status
            if self._reconsidered.get(intent.id) != place:
                yield intent, self._reconsider(intent, place)

    def follow_action(self, intent: Intent) -> Dialogue[Intent | None]:
        """Look once at an action for a host that is not known to have ended; raises what `follow` raises."""
        if intent.kind in OF_VMS:
            vm = yield self._read(intent)
            progress, status = vm_progress(intent.kind, vm), "gone"
        else:
            host = yield partial(actions.read_host, self.connection, intent.target)
            progress, status = host_progress(intent.kind, host), host.status if host else "gone"
        accepted = intent.state is IntentState.ACCEPTED
        if progress is HostProgress.NOT_BEGUN:
            if intent.age_seconds < self.settings.settle_seconds:
                return None
            why = ("it had no effect", None) if accepted else (intent.error, Cause.NO_TRACE)
            return self._record_end(intent, self.store.fail, *why)
        if not accepted:
            self._record_end(intent, partial(self.store.accept, surely=False))
        if progress is HostProgress.DONE:
            return self._record_end(intent, self.store.finish)
        if progress is HostProgress.FAILED:
            return self._record_end(intent, self.store.fail, f"the host has status {status}")
        return None

    def _reconsider(self, intent: Intent, place: tuple[str | None, str]) -> Dialogue[Intent | None]:
        yield from self._confirmed(intent)
        self._reconsidered[intent.id] = place
        return None

    def _read(self, intent: Intent) -> Callable[[], VmState | None]:
        return partial(actions.read_vm, self.connection, intent.vm)

    def _confirmed(self, intent: Intent) -> Dialogue[bool]:
        """Whether the engine's events show that it began what we do not know to be accepted."""
        began: str | None = yield partial(_event_text, self.connection, intent, events.STARTED)
        if began is not None:
            self.record((intent,), self.store.accept)
        return began is not None

    def _unconfirmed(self, intent: Intent, noted: _Noted) -> Dialogue[Intent | None]:
        """Wait until the engine must have shown that it accepted, and the VM stays where it is.

        A VM that has come to the target counts as arrived, whatever is missing among the events.
        """
        seen = yield self._read(intent)
        refused = intent.cause in REFUSALS
        waited = max(intent.age_seconds, self.clock() - noted.since)
        settled = refused or waited >= self.settings.settle_seconds
        if not settled or (seen and seen.status == "migrating"):
            noted.blanks = 0
            return None
        if not refused and seen is not None and seen.host == intent.target:
            # Another may have given it up meanwhile, and sent the VM there by a request of its own.
            self.record((intent,), partial(self.store.accept, surely=False))
            return None
        if not refused and waited < self.settings.migration_timeout_seconds:
            # It may begin any moment.
            asked = yield partial(requests.is_working, self.connection, intent.request_id)
            if asked:
                noted.blanks = 0
                return None
        if not noted.is_sure():
            return None
        why = (intent.error, intent.cause) if refused else (yield from self._why_not_begun(intent, seen))
        return self._record_end(intent, self.store.fail, *why)

    def _why_not_begun(self, intent: Intent, seen: VmState | None) -> Dialogue[_Why]:
        refusal = yield partial(_event_text, self.connection, intent, events.REFUSED)
        if refusal is not None:
            return refusal, Cause.TARGET_REFUSED
        if seen is None:
            return _ENDS[Progress.GONE], None
        if seen.host is None:
            return _ENDS[Progress.STOPPED], None
        return intent.error, Cause.NO_TRACE


#: Actions on VMs, for the maintenance of a host.
OF_VMS: Final = (IntentKind.STOP_VM, IntentKind.START_VM)


class HostProgress(StrEnum):
    NOT_BEGUN = "not begun"
    UNDER_WAY = "under way"
    DONE = "done"
    FAILED = "failed"


def host_progress(kind: IntentKind, seen: HostState | None) -> HostProgress:
    """How far an action on a host is; one that is gone has failed."""
    if seen is None:
        return HostProgress.FAILED
    leaving = seen.status == "preparing_for_maintenance"
    if kind is IntentKind.DEACTIVATE_HOST:
        if seen.status == "maintenance":
            return HostProgress.DONE
        return HostProgress.UNDER_WAY if leaving else HostProgress.NOT_BEGUN
    if seen.status in ("up", "install_failed"):
        return HostProgress.DONE if seen.status == "up" else HostProgress.FAILED
    if kind is IntentKind.ACTIVATE_HOST:
        waits = leaving or seen.status == "maintenance"
        return HostProgress.NOT_BEGUN if waits else HostProgress.UNDER_WAY
    if seen.status == "maintenance":
        return HostProgress.NOT_BEGUN if seen.update_available else HostProgress.DONE
    return HostProgress.UNDER_WAY


def vm_progress(kind: IntentKind, seen: VmState | None) -> HostProgress:
    """How far the stop or start of a VM is; one that is gone is stopped."""
    if kind is IntentKind.STOP_VM:
        if seen is None or seen.status == "down":
            return HostProgress.DONE
        return HostProgress.UNDER_WAY if seen.status == "powering_down" else HostProgress.NOT_BEGUN
    if seen is None:
        return HostProgress.FAILED
    if seen.host is not None:
        return HostProgress.DONE
    return HostProgress.NOT_BEGUN if seen.status == "down" else HostProgress.UNDER_WAY
