"""Remembers what was intended: each migration and each action on a host, until its end is known.

What is true is in the engine; what was meant is here, so that a process that dies at any point can be
started again. Every transition is one transaction, and every time is the database's.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from sqlalchemy import ColumnElement

from ovirt_placement.model.record import Worded
from ovirt_placement.store.enforcer.observations import keep_counts
from ovirt_placement.store.orders import refuse_if_paused
from ovirt_placement.store.sql.access import EngineRows, StoreAccess, age, fence, is_set_back, now, settle
from ovirt_placement.store.sql.schema import IS_MIGRATION, held_steps, intents, plans, user_actions


class Cause(Worded):
    """The causes that something depends on; all others have words alone."""

    NEVER_ASKED = "never_asked", "never reached the engine"
    #: The engine refused this target; another may do.
    TARGET_REFUSED = "target_refused", "refused"
    #: The engine refused to migrate the VM, whatever the target.
    VM_REFUSED = "vm_refused", "refused: not now"
    NO_TRACE = "no_trace", "no answer, and no trace of it in the engine"
    INTERRUPTED = "interrupted", "interrupted"


#: The engine refused: nothing moved.
REFUSALS = (Cause.TARGET_REFUSED, Cause.VM_REFUSED)


def sentence(cause: Cause | None, error: str | None) -> str | None:
    """Return cause and words as one sentence; None if there is neither."""
    parts = (None if cause is None else cause.text, error)
    return ": ".join(part for part in parts if part) or None


#: How long an intent that the engine has not confirmed reserves its target.
BLOCKING_SECONDS = 30.0


class IntentKind(Worded):
    """What the engine is asked for, with its title."""

    MIGRATE_VM = "migrate_vm", "migration of {vm} to {host}"
    #: Actions on a host, which is the target; there is no VM.
    DEACTIVATE_HOST = "deactivate_host", "deactivation of host {host}"
    UPGRADE_HOST = "upgrade_host", "upgrade of host {host}"
    ACTIVATE_HOST = "activate_host", "activation of host {host}"
    #: What is done with a VM that cannot migrate, for the maintenance of its host, which is the target.
    STOP_VM = "stop_vm", "shutdown of {vm} for the maintenance of host {host}"
    START_VM = "start_vm", "start of {vm} after the maintenance of host {host}"
    #: A command of the administrator does the work on a host in maintenance; the engine is asked nothing.
    RUN_COMMAND = "run_command", "command for host {host}"


class IntentState(StrEnum):
    PREPARED = "prepared"  # written before the engine is asked
    ACCEPTED = "accepted"  # the engine said yes; the migration is under way
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"  # asked, but no answer came: the engine's events will show


_OPEN = (IntentState.PREPARED, IntentState.ACCEPTED, IntentState.UNKNOWN)
#: As the database has them.
OPEN_STATES = tuple(state.value for state in _OPEN)
_ENDED = (IntentState.DONE, IntentState.FAILED)
_UNANSWERED = (IntentState.PREPARED, IntentState.UNKNOWN)
_MAY_FOLLOW = {
    # Also after one who did not see the request under way gave it up: what the engine says counts.
    IntentState.ACCEPTED: (*_UNANSWERED, IntentState.FAILED),
    IntentState.DONE: (IntentState.ACCEPTED, IntentState.UNKNOWN),
    IntentState.FAILED: _OPEN,
    IntentState.UNKNOWN: (IntentState.PREPARED, IntentState.ACCEPTED),
}

_COLUMNS = (*intents.columns, age(intents.c.updated))


class ImpossibleTransition(Exception):
    """An intent was to enter a state that cannot follow the one it is in."""


class IntendedMigration(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with a VM, or with a host."""

    #: Empty for an action on a host.
    vm: str
    cluster: str
    #: The host that it leaves; None for a start.
    source: str | None
    target: str
    #: The engine puts it on every event of the migration.
    correlation_id: str
    #: What it will take on the target, in MiB, where that is known.
    memory_mb: int | None = None
    #: The id of the plan, and the number of its step (from 1), that it carries out.
    plan: str | None = None
    step: int | None = None
    #: A digest of what it was decided under, which shows whether that has changed since.
    fingerprint: str | None = None
    kind: IntentKind = IntentKind.MIGRATE_VM


class Intent(IntendedMigration, frozen=True, kw_only=True):
    """One migration of a VM, or another action, that a client means to do, is doing, or did."""

    id: int = 0
    state: IntentState = IntentState.PREPARED
    #: Seconds since the epoch, by the database's clock.
    created: float = 0.0
    updated: float = 0.0
    #: Seconds since `updated` when this was read, by the database's clock; never negative.
    age_seconds: float = 0.0
    #: Why it failed or is unknown: what something depends on, and the words of the engine or of ours.
    cause: Cause | None = None
    error: str | None = None

    @property
    def reason(self) -> str | None:
        """Why it failed or is unknown, in one sentence."""
        return sentence(self.cause, self.error)

    @property
    def request_id(self) -> str:
        """The correlation id of its request: VMs that the engine moves at once share one."""
        return self.correlation_id.partition("-")[0]

    @property
    def open(self) -> bool:
        """Whether its end is not known yet."""
        return self.state in _OPEN

    @property
    def fresh(self) -> bool:
        """Whether its state is so young that the engine may not show it yet."""
        return self.age_seconds < BLOCKING_SECONDS

    @property
    def blocking(self) -> bool:
        """Whether it reserves its target against other VMs (never against its own)."""
        return self.state is IntentState.ACCEPTED or (self.open and self.fresh)


class Store(StoreAccess):
    """The intents of one engine, in a database."""

    def prepare(
        self,
        migrations: Iterable[IntendedMigration],
        *,
        epoch: int | None = None,
        paused_by: Iterable[str] = (),
    ) -> tuple[Intent, ...]:
        """Write down the migrations of one request before the engine is asked: all of them, or none.

        A group that the engine moves at once is never remembered by half, whenever the process dies.
        `epoch` is that of the lease under which they were decided, from before the engine was read for it.
        `paused_by` are the ids and names of clusters whose pauses concern them, as those of all clusters do.
        Raises `LeaseLost`, and writes nothing, if that epoch is over, and `Paused` if they are paused.
        """
        state = {"state": IntentState.PREPARED.value, "created": now(), "updated": now()}
        with self._transaction() as rows:
            if epoch is not None:
                fence(rows, epoch)
            refuse_if_paused(rows, paused_by)
            ids = [
                rows.add(intents, msgspec.structs.asdict(one) | {"kind": one.kind.value} | state)[0]
                for one in migrations
            ]
            return tuple(_read(rows, one) for one in ids)

    def check_pauses(self, paused_by: Iterable[str]) -> None:
        """Raise `Paused` if migrations have been paused since they were prepared, as `prepare` does."""
        with self._transaction() as rows:
            refuse_if_paused(rows, paused_by)

    def accept(self, intent_id: int, *, surely: bool = True) -> Intent:
        """Record that the engine accepted the migration; of one that was given up only if that is sure."""
        after = _MAY_FOLLOW[IntentState.ACCEPTED] if surely else _UNANSWERED
        return self._change_state(intent_id, IntentState.ACCEPTED, after)

    def finish(self, intent_id: int, target: str | None = None) -> Intent:
        """Record that the VM arrived, on `target` where the engine chose that."""
        chosen = {} if target is None else {"target": target}
        return self._change_state(intent_id, IntentState.DONE, **chosen)

    def fail(self, intent_id: int, error: str | None, cause: Cause | None = None) -> Intent:
        """Record that the engine refused, or that the VM did not arrive."""
        return self._change_state(intent_id, IntentState.FAILED, error=error, cause=cause)

    def lose(self, intent_id: int, error: str, cause: Cause | None = None) -> Intent:
        """Record that it is not known whether the engine accepted, or how the migration ended."""
        return self._change_state(intent_id, IntentState.UNKNOWN, error=error, cause=cause)

    def open_intents(self) -> tuple[Intent, ...]:
        """List the migrations whose end is not known, oldest first: what a start must reconcile."""
        return self._list(_in(_OPEN), IS_MIGRATION)

    def open_actions(self) -> tuple[Intent, ...]:
        """List the actions on hosts, and with VMs for the maintenance of hosts, whose end is not known."""
        return self._list(_in(_OPEN), ~IS_MIGRATION)

    def actions(self, host: str, *, within_seconds: float) -> tuple[Intent, ...]:
        """List the actions for a host that ended lately, the oldest first."""
        lately = (_in(_ENDED), intents.c.updated > now() - within_seconds)
        return self._list(*lately, ~IS_MIGRATION, intents.c.target == host)

    def blocking_intents(self) -> tuple[Intent, ...]:
        """List the open intents that reserve their target against other VMs."""
        return tuple(intent for intent in self.open_intents() if intent.blocking)

    def history(self, *, within_seconds: float) -> tuple[Intent, ...]:
        """List the migrations that ended (done or failed) lately, oldest first: what cooldowns count."""
        return self._list(_in(_ENDED), IS_MIGRATION, intents.c.updated > now() - within_seconds)

    def settle_clock(self) -> bool:
        """Take all that is dated in the future as written now: whether the clock was set back since."""
        with self._reading() as rows:
            if not is_set_back(rows):
                return False
        with self._transaction() as rows:
            settle(rows)
        return True

    def forget(self, *, older_than_seconds: float) -> int:
        """Delete the intents that ended longer ago, and plans and user actions of then; how many intents.

        The samples of these hours count them from then on, until the samples are deleted, too. It is the
        leader's: raises `LeaseLost`. Two at once would count them twice.
        """
        with self._leading() as rows:
            long_ago = rows.now() - older_than_seconds
            keep_counts(rows, long_ago)
            for table in (plans, held_steps, user_actions):
                rows.remove(table, table.c.updated < long_ago)
            return rows.remove(intents, _in(_ENDED), intents.c.updated < long_ago)

    def _change_state(
        self, intent_id: int, state: IntentState, after: Iterable[IntentState] = (), /, **changes: str | None
    ) -> Intent:
        """Enter a state in one statement, which no crash can halve and no second process overtake.

        SQLite knows `RETURNING` since 3.35 only: who has written reads it back within the transaction.
        """
        with self._transaction() as rows:
            values = {"state": state.value, "updated": now(), "error": None, "cause": None} | changes
            may = _in(after or _MAY_FOLLOW[state])
            if rows.change(intents, intents.c.id == intent_id, may, **values) == 1:
                return _read(rows, intent_id)
            present = rows.select(intents, intents.c.state).where(intents.c.id == intent_id)
            found = rows.execute(present).scalar()
        raise ImpossibleTransition(
            f"intent {intent_id} {f'is {found}' if found else 'does not exist'} and cannot become {state}"
        )

    def _list(self, *conditions: ColumnElement[bool]) -> tuple[Intent, ...]:
        with self._reading() as rows:
            query = rows.select(intents, *_COLUMNS).where(*conditions).order_by(intents.c.id)
            return rows.records(Intent, query)


def _in(states: Iterable[IntentState]) -> ColumnElement[bool]:
    return intents.c.state.in_([state.value for state in states])


def _read(rows: EngineRows, intent_id: int) -> Intent:
    """Read an intent that this transaction has written, which no other client changes before its end."""
    (intent,) = rows.records(Intent, rows.select(intents, *_COLUMNS).where(intents.c.id == intent_id))
    return intent
