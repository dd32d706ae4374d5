"""What the store says of the enforcer: who leads, what is paused or waits, and how migrations went lately."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import msgspec

from ovirt_placement.answers.document import utc_text
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import NamedCluster, NamedHost, NamedVm, counted, host_name, vm_name
from ovirt_placement.model.record import From, Record, with_names
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.store.sql.access import StoreAccess


#: Migrations are counted that ended within this time, in seconds.
LATELY_SECONDS = 24 * 3600.0
#: Where `[enforcer]` says nothing.
_DEFAULT_MODE: Final = "observe"
#: What `not_led` says unless there is more to it.
NOT_RUNNING: Final = "no enforcer runs"
#: How long each part of the store may take to answer.
_PATIENCE_SECONDS = 2.0
#: And all together.
_MOST_PATIENCE_SECONDS = 10.0
#: Of the recorded refusals this many are shown.
_MOST_REFUSALS = 5

_Part = TypeVar("_Part", bound="StoreAccess")
_Answer = TypeVar("_Answer")


class _Settings(msgspec.Struct, frozen=True):
    """Of the section `[enforcer]`, what matters here."""

    #: None where it does not say.
    mode: str | None = None


class WaitingPlanRecord(Record, frozen=True, omit_defaults=False):
    """A plan that waits for approval."""

    cluster: NamedCluster
    plan: str
    migrations: Annotated[int, From(lambda plan, _: sum(len(move.vms) for move in plan.moves))]
    #: UTC.
    since: Annotated[str, From(lambda plan, _: utc_text(plan.since))]


class CycleRecord(Record, frozen=True, omit_defaults=False):
    """The last cycle of the enforcer that leads, or led last."""

    #: UTC.
    ended: Annotated[str, From(lambda cycle, _: utc_text(cycle.ended))]
    age_seconds: Annotated[float, From(lambda cycle, _: round(max(0.0, cycle.age_seconds), 1))]
    #: Why it failed; null if it did not.
    error: str | None


class BreakerRecord(Record, frozen=True, omit_defaults=False):
    """A cluster in which nothing is migrated for a while, since migrations failed there."""

    cluster: NamedCluster
    reason: str


class RefusalRecord(Record, frozen=True, omit_defaults=False):
    """A VM that is not migrated to a host for now: the engine refused it, or a user undid it."""

    vm: NamedVm
    #: Null where it is not migrated at all.
    host: NamedHost | None
    reason: str


class EnforcementRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """The enforcer of an engine; nothing is known where the store does not answer."""

    #: Of the process that leads: observe, approve or enforce. Where none does, or it is not known, as
    #: `[enforcer]` says here.
    mode: str
    #: As `[enforcer]` says here; null where it does not.
    configured_mode: str | None
    #: The process that leads; null where none does.
    leader: str | None = None
    epoch: int | None = None
    #: Who paused what, when and why, as sentences.
    paused: tuple[str, ...] = ()
    waiting: tuple[WaitingPlanRecord, ...] = ()
    #: Null where none has ended yet.
    last_cycle: CycleRecord | None = None
    #: As of the last cycle.
    breakers: tuple[BreakerRecord, ...] = ()
    refusals: tuple[RefusalRecord, ...] = ()
    migrations_under_way: int = 0
    #: Of the last 24 hours.
    migrations_done: int = 0
    #: Those that began and came to nothing.
    migrations_failed: int = 0
    #: Those that the engine refused: nothing began, and the next best host was tried.
    migrations_refused: int = 0
    #: The last one that failed, as a sentence.
    last_failure: str | None = None
    #: Why the store does not answer.
    error: str | None = None
    #: Why the store cannot be written, so that no enforcer leads, though it can be read; else null.
    unwritable: str | None = None
    #: Of the process that led last, where it runs on this machine still.
    running_process: int | None = None

    @property
    def acts(self) -> bool:
        return self.mode != "observe"


def enforcement(
    config: Config, snapshot: Snapshot, seconds: float = _MOST_PATIENCE_SECONDS
) -> EnforcementRecord:
    """What the store says within this time. Raises `UserError` if the section is wrong."""
    from ovirt_placement.store.enforcer.leader import last_owner
    from ovirt_placement.store.sql.access import answered_within
    from ovirt_placement.store.sql.connections import sqlite_path

    configured = config.section("enforcer", _Settings).mode
    here = EnforcementRecord(mode=configured or _DEFAULT_MODE, configured_mode=configured)
    try:
        return answered_within(config, seconds, lambda: _read(config, snapshot, here))
    except UserError as error:
        here = msgspec.structs.replace(here, error=str(error))
        unwritable, path = _unwritable(config.store.url), sqlite_path(config.store.url)
        if unwritable is None or path is None:
            return here
        # It cannot even be read, since no room is left for that.
        running = _running_process(last_owner(path, config.engine.name))
        return msgspec.structs.replace(here, unwritable=unwritable, running_process=running)


def not_led(config: Config) -> str | None:
    """Why nothing is carried out; None while an enforcer leads. Raises `StoreAway`."""
    from ovirt_placement.store.enforcer.leader import LeaseStore
    from ovirt_placement.store.sql.access import stored

    last = stored(LeaseStore, config, LeaseStore.read, None)
    if last is not None and last.left_seconds > 0:
        return None
    return _not_led(_unwritable(config.store.url), _running_process(None if last is None else last.owner))


def _read(config: Config, snapshot: Snapshot, here: EnforcementRecord) -> EnforcementRecord:
    from ovirt_placement.store.enforcer.intents import REFUSALS, Cause, Intent, IntentState, Store
    from ovirt_placement.store.enforcer.leader import CycleStore, EnforcerSettingsStore, LeaseStore
    from ovirt_placement.store.orders import ApprovalStore, PauseStore
    from ovirt_placement.store.sql.access import opened
    from ovirt_placement.store.sql.database import StoreUnmade

    def ask(kind: type[_Part], question: Callable[[_Part], _Answer]) -> _Answer:
        with opened(kind, config, patience_seconds=_PATIENCE_SECONDS, create=False) as part:
            return question(part)

    def failure(intent: Intent) -> str:
        where = f"{vm_name(intent.vm, snapshot)} to {host_name(intent.target, snapshot)}"
        return f"{where} at {utc_text(intent.updated)}: {intent.reason or 'no reason is known'}"

    try:
        # As long as one part is open, the others share its connection.
        with opened(Store, config, patience_seconds=_PATIENCE_SECONDS, create=False):
            lately = ask(Store, lambda store: store.history(within_seconds=LATELY_SECONDS))
            under_way = len(ask(Store, Store.open_intents))
            last = ask(LeaseStore, LeaseStore.read)
            paused = tuple(pause.sentence for pause in ask(PauseStore, PauseStore.pauses))
            plans = ask(ApprovalStore, ApprovalStore.waiting)
            cycle = ask(CycleStore, CycleStore.last)
            its_own = ask(EnforcerSettingsStore, EnforcerSettingsStore.leader_settings)
    except StoreUnmade:
        return here
    leads = last if last is not None and last.left_seconds > 0 else None
    ended_badly = [one for one in lately if one.state is IntentState.FAILED]
    failed = [one for one in ended_badly if one.cause not in (*REFUSALS, Cause.NEVER_ASKED)]
    return with_names(
        EnforcementRecord,
        here,
        snapshot,
        mode=here.mode if its_own is None else its_own["mode"],
        leader=None if leads is None else leads.owner,
        epoch=None if leads is None else leads.epoch,
        paused=paused,
        waiting=plans,
        last_cycle=cycle,
        breakers=cycle.breakers if cycle else (),
        refusals=cycle.refusals if cycle else (),
        migrations_under_way=under_way,
        migrations_done=sum(one.state is IntentState.DONE for one in lately),
        migrations_failed=len(failed),
        migrations_refused=sum(one.cause in REFUSALS for one in ended_badly),
        last_failure=failure(max(failed, key=lambda one: one.updated)) if failed else None,
        unwritable=_unwritable(config.store.url),
        running_process=_running_process(None if last is None else last.owner),
    )


def _unwritable(url: str) -> str | None:
    from ovirt_placement.store.sql.connections import find_file_system_fault, sqlite_path

    with suppress(OSError):
        path = sqlite_path(url)
        fault = None if path is None else find_file_system_fault(path)
        return None if fault is None else f"{fault.what}: {fault.remedy}"
    return None


def _running_process(owner: str | None) -> int | None:
    """The process of an enforcer, by the name under which it led, if it runs here."""
    host, process, _ = (*(owner or "").rsplit("-", 2), "", "")[:3]
    with suppress(OSError, ValueError):
        command = Path(f"/proc/{process}/cmdline")
        if host == socket.gethostname() and b"ovirt-enforcer" in command.read_bytes():
            return int(process)
    return None


# -- in words
def enforcement_text(found: EnforcementRecord) -> Iterator[str]:
    if found.error is not None:
        known = f", {_who(found)}" if found.running_process is not None else ""
        yield f"Enforcer: mode {found.mode}{known}; nothing else is known: {found.error}."
        return
    yield f"Enforcer: mode {found.mode}, {_who(found)}."
    if found.configured_mode not in {None, found.mode}:
        starts = "it takes effect when ovirt-enforcer is restarted"
        yield f"The configuration here says mode {found.configured_mode}: {starts}."
    if found.last_cycle is not None:
        came = "successful" if found.last_cycle.error is None else f"failed: {found.last_cycle.error}"
        yield f"Last cycle: {found.last_cycle.age_seconds:.0f} s ago, {came}."
    yield from (f"Paused: {sentence}." for sentence in found.paused)
    yield from (f"Breaker open in cluster {one.cluster.name}: {one.reason}." for one in found.breakers)
    for plan in found.waiting:
        waits = f"Plan {plan.plan} of cluster {plan.cluster.name} waits for approval since {plan.since}"
        yield f"{waits}: {counted(plan.migrations, 'migration')}."
    yield (
        f"Migrations: {found.migrations_under_way} under way; in the last 24 hours"
        f" {found.migrations_done} done, {found.migrations_failed} failed,"
        f" {found.migrations_refused} refused."
    )
    if found.last_failure is not None:
        yield f"Last failed: {found.last_failure}."
    for refusal in found.refusals[:_MOST_REFUSALS]:
        where = "anywhere" if refusal.host is None else f"to {refusal.host.name}"
        yield f"Not migrated for now: {refusal.vm.name} {where}: {refusal.reason}."
    if (more := len(found.refusals) - _MOST_REFUSALS) > 0:
        yield f"Not migrated for now: {more} more (--json has all)."


def _who(found: EnforcementRecord) -> str:
    if found.leader is not None:
        return f"led by {found.leader} (epoch {found.epoch})"
    return _not_led(found.unwritable, found.running_process)


def _not_led(unwritable: str | None, running_process: int | None) -> str:
    if unwritable is None:
        return NOT_RUNNING
    runs = "none leads" if running_process is None else f"process {running_process} runs"
    return f"{runs} and cannot write the store: {unwritable}"


def degraded_by(found: EnforcementRecord) -> Iterator[str]:
    """What is to be looked at, as parts of a sentence."""
    if found.error is not None and found.acts:
        yield "the enforcer's store does not answer"
    elif found.acts and found.leader is None:
        yield NOT_RUNNING if found.unwritable is None else "the enforcer cannot write its store"
    if found.last_cycle is not None and found.last_cycle.error is not None and found.leader is not None:
        yield "the enforcer's last cycle failed"
    for one in found.breakers if found.leader is not None else ():
        yield f"cluster {one.cluster.name}: the breaker is open: migrations failed there"
    if found.paused:
        yield "migrations are paused"
    if found.waiting:
        yield "a plan waits for approval" if len(found.waiting) == 1 else "plans wait for approval"
    if failed := found.migrations_failed:
        yield f"{counted(failed, 'migration')} failed in the last 24 hours"
