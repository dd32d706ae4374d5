"""Remembers what people did: who, on which machine, when, and what came of it.

What is an act upon the store alone is recorded in the transaction that it is. What an engine is asked for is
recorded as begun before the first request, so that whatever ends the command leaves a record that is true.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

import msgspec

from ovirt_placement.model.record import Worded
from ovirt_placement.store.sql.access import EngineRows, StoreAccess, now
from ovirt_placement.store.sql.schema import user_actions

#: Of many details this many are shown in a sentence; the record has all of them.
_SHOWN: Final = 5
#: A record has at most this many details.
_MOST_DETAILS: Final = 1000


class UserActionKind(Worded):
    """What people do."""

    APPROVE = "approve", "approved plan {plan}"
    REFUSE = "refuse", "refused plan {plan}"
    APPLY = "apply", "applied plan {plan}"
    UNDO = "undo", "applied plan {plan}, which undoes plan {subject},"
    PAUSE = "pause", "paused migrations"
    RESUME = "resume", "resumed migrations"
    KEYS = "keys", "changed placement keys"
    RULES = "rules", "changed placement rules"
    SETUP = "setup", "set up scheduling policy {subject}"
    SETUP_UNDO = "setup_undo", "undid the setup of scheduling policy {subject}"
    MAINTENANCE = "maintenance", "requested maintenance run {subject}"
    MAINTENANCE_PAUSE = "maintenance_pause", "paused maintenance run {subject}"
    MAINTENANCE_RESUME = "maintenance_resume", "resumed maintenance run {subject}"
    MAINTENANCE_STOP = "maintenance_stop", "stopped maintenance run {subject}"
    GROUP_ADD = "group_add", "added affinity group {subject}"
    GROUP_EDIT = "group_edit", "changed affinity group {subject}"
    GROUP_REMOVE = "group_remove", "removed affinity group {subject}"
    STORE_INIT = "store_init", "made the lost store again, empty"
    STORE_RESTORE = "store_restore", "restored the store from {subject}"
    SETTINGS = "settings", "leads with changed settings"


class UserActionState(StrEnum):
    BEGUN = "begun"  # an engine is being asked, or the client ended before the record
    DONE = "done"
    FAILED = "failed"


_OF_ALL_CLUSTERS: Final = (UserActionKind.PAUSE, UserActionKind.RESUME)


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What a user does."""

    kind: UserActionKind
    #: Of the user who does it.
    login: str
    #: The user that the engine is asked as, where it is.
    engine_user: str | None = None
    #: The id and the name of the cluster that it is about; empty for all of them, or none.
    cluster: str = ""
    cluster_name: str = ""
    #: The id of the plan that it is about.
    plan: str | None = None
    #: The name of what else it is about: a scheduling policy, an affinity group, the plan that is undone.
    subject: str = ""
    #: What was changed, or why, each in words.
    details: tuple[str, ...] = ()


class UserAction(Act, frozen=True, kw_only=True):
    """What a user did. Moments are seconds since the epoch, by the database's clock."""

    id: int
    #: Where the command ran.
    machine: str
    state: UserActionState
    #: Why it failed.
    error: str | None
    created: float
    #: When its state was last changed.
    updated: float

    @property
    def sentence(self) -> str:
        """Who did what, where, and what came of it."""
        what = self.kind.text.format(plan=self.plan, subject=self.subject)
        if self.cluster:
            what += f" in cluster {self.cluster_name}"
        elif self.kind in _OF_ALL_CLUSTERS:
            what += " in all clusters"
        details = list(self.details[:_SHOWN])
        if more := len(self.details) - len(details):
            details.append(f"and {more} more")
        detailed = f": {'; '.join(details)}" if details else ""
        endings = {
            UserActionState.DONE: "",
            UserActionState.BEGUN: " (begun; its end is not recorded)",
            UserActionState.FAILED: f" (failed: {self.error})",
        }
        as_user = f" (as {self.engine_user})" if self.engine_user else ""
        return f"{self.login} on {self.machine}{as_user} {what}{detailed}{endings[self.state]}"


class UserActionStore(StoreAccess):
    """What people did with one engine, in a database."""

    def begin(self, act: Act) -> int:
        """Record what an engine is about to be asked for; return its number."""
        with self._transaction() as rows:
            return record(rows, act, UserActionState.BEGUN)

    def end(self, number: int, error: str | None = None) -> None:
        """Record what came of it."""
        state = UserActionState.DONE if error is None else UserActionState.FAILED
        with self._transaction() as rows:
            here = user_actions.c.id == number
            rows.change(user_actions, here, state=state.value, error=error, updated=now())

    def actions(self, *, since_seconds: float) -> tuple[UserAction, ...]:
        """List what people did lately, the oldest first."""
        with self._reading() as rows:
            query = rows.select(user_actions).where(user_actions.c.updated > now() - since_seconds)
            return rows.records(UserAction, query.order_by(user_actions.c.id))

    @contextmanager
    def unlogged(self) -> Iterator[tuple[UserAction, ...]]:
        """Give what no log has in its present state; it counts as logged once the block has ended.

        It is the leader's: raises `LeaseLost` if it leads no more. A process that dies within the block
        leaves it to be logged again.
        """
        with self._reading() as rows:
            query = rows.select(user_actions).where(user_actions.c.logged != user_actions.c.state)
            found = rows.records(UserAction, query.order_by(user_actions.c.id))
        yield found
        if not found:
            return
        with self._leading() as rows:
            for one in found:
                rows.change(user_actions, user_actions.c.id == one.id, logged=one.state.value)


def record(rows: EngineRows, act: Act, state: UserActionState = UserActionState.DONE) -> int:
    """Record an act within the transaction that it is, or before it; return its number."""
    values = {
        **msgspec.structs.asdict(act),
        "kind": act.kind.value,
        "details": list(act.details[:_MOST_DETAILS]),
        "machine": socket.gethostname(),
        "state": state.value,
        "created": now(),
        "updated": now(),
        "logged": "",
    }
    return int(rows.add(user_actions, values)[0])
