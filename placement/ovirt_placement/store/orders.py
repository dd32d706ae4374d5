"""Remembers what people order: when nothing may be migrated, and which plans may be carried out."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, or_

from ovirt_placement.store.sql.access import EngineRows, StoreAccess, age, hold_back_writers, now
from ovirt_placement.store.sql.schema import (
    approvals,
    pauses,
    plans,
    resumptions,
    user_actions,
    waiting_plans,
)
from ovirt_placement.store.user_actions import Act, UserAction, UserActionKind, record
from ovirt_service.errors import UserError

#: The cluster of a pause, or of a resumption, that is of all clusters.
ALL_CLUSTERS = ""


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is migrated in a cluster, or in any, until it ends by itself or a user ends it."""

    #: The id of the cluster, or `ALL_CLUSTERS`.
    cluster: str
    #: Its name when the pause was set; empty for all clusters.
    cluster_name: str
    reason: str
    set_by: str
    #: Seconds since the epoch, by the database's clock; None of `until` is for ever.
    set_at: float
    until: float | None

    @property
    def sentence(self) -> str:
        """Who paused what, when and why."""
        where = f"cluster {self.cluster_name}" if self.cluster else "everything"
        since = datetime.fromtimestamp(self.set_at, UTC).isoformat(" ", "minutes")
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.set_by} paused {where} at {since}{reason}"


class Paused(UserError):
    """Migrations are paused where one was to begin, or not by the pause that was meant."""


class PauseStore(StoreAccess):
    """The pauses of one engine, in a database."""

    def pause(
        self,
        cluster: str,
        *,
        cluster_name: str,
        reason: str,
        set_by: str,
        seconds: float | None,
        over: bool = True,
    ) -> None:
        """Let nothing be migrated in a cluster for so long, or for ever; the last word on it counts.

        But for one that is not meant to go `over` another: raises `Paused` where one is in force there.

        Every intent is either written before this, or refused: see `refuse_if_paused`.
        """
        values = {
            "cluster_name": cluster_name,
            "reason": reason,
            "set_by": set_by,
            "set_at": now(),
            "until": None if seconds is None else now() + seconds,
        }
        with self._transaction() as rows:
            hold_back_writers(rows)
            if not over:
                refuse_if_paused(rows, [cluster])
            rows.put(pauses, {"cluster": cluster}, values)
            how_long = "until resumed" if seconds is None else f"for {seconds / 3600:g} h"
            act = Act(kind=UserActionKind.PAUSE, login=set_by, cluster=cluster, cluster_name=cluster_name)
            details = (how_long, reason) if reason else (how_long,)
            record(rows, msgspec.structs.replace(act, details=details))

    def resume(self, cluster: str, *, set_by: str, cluster_name: str = "", set_at: str = "") -> Pause | None:
        """Take back the pause of a cluster, and let its breaker count no failure before this.

        `ALL_CLUSTERS` takes back the pause of all clusters, not those of single ones. `cluster_name` is for
        the record of who did it. Return the pause, if one was in force. With `set_at`, when the one was set
        that is meant, it raises `Paused` where that is not in force any more.
        """
        with self._transaction() as rows:
            hold_back_writers(rows)  # what it reports is what it takes back
            lifted = _in_force(rows, pauses.c.cluster == cluster)
            if set_at and [str(one.set_at) for one in lifted] != [set_at]:
                raise Paused(lifted[0].sentence if lifted else "migrations are not paused there any more")
            rows.remove(pauses, pauses.c.cluster == cluster)
            rows.put(resumptions, {"cluster": cluster}, {"set_by": set_by, "set_at": now()})
            name = cluster_name or cluster
            record(rows, Act(kind=UserActionKind.RESUME, login=set_by, cluster=cluster, cluster_name=name))
        return lifted[0] if lifted else None

    def pauses(self) -> tuple[Pause, ...]:
        """List the pauses that are in force: that of all clusters first, then by name."""
        with self._reading() as rows:
            return _in_force(rows)

    def resumed(self) -> dict[str, float]:
        """Return how many seconds ago migrations were resumed, by cluster; `ALL_CLUSTERS` among them."""
        age = (now() - resumptions.c.set_at).label("age")
        with self._reading() as rows:
            found = rows.execute(rows.select(resumptions, resumptions.c.cluster, age))
            return {row.cluster: row.age for row in found}

    def resumptions(self) -> tuple[tuple[str, float], ...]:
        """List when migrations were resumed: by cluster, in seconds since the epoch by the database."""
        with self._reading() as rows:
            query = rows.select(resumptions, resumptions.c.cluster, resumptions.c.set_at)
            return tuple(
                (row.cluster, row.set_at) for row in rows.execute(query.order_by(resumptions.c.cluster))
            )


def refuse_if_paused(rows: EngineRows, clusters: Iterable[str]) -> None:
    """Raise `Paused` if a pause of all clusters, or of one of these ids or names, is in force.

    After `fence` in the same transaction, no pause is committed between this and its end.
    """
    for pause in _in_force(rows, pauses.c.cluster.in_([ALL_CLUSTERS, *clusters])):
        raise Paused(pause.sentence)


def _in_force(rows: EngineRows, *conditions: ColumnElement[bool]) -> tuple[Pause, ...]:
    order = (pauses.c.cluster != ALL_CLUSTERS, pauses.c.cluster_name, pauses.c.cluster)
    lasts = or_(pauses.c.until.is_(None), pauses.c.until > now())
    return rows.records(Pause, rows.select(pauses).where(lasts, *conditions).order_by(*order))


#: Words that let a plan be carried out.
_CARRIED_OUT: Final = (UserActionKind.APPROVE, UserActionKind.APPLY, UserActionKind.UNDO)


class ApprovedMove(NamedTuple):
    """One step of a plan: VMs, in order, with the host that each leaves, and where they go."""

    vms: tuple[str, ...]
    sources: tuple[str, ...]
    target: str


class WaitingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a cluster that is not carried out before a user approves of it."""

    cluster: str
    #: Its digest.
    plan: str
    moves: tuple[ApprovedMove, ...]
    #: It, as an administrator reads it.
    text: str
    #: Seconds since the epoch, by the database's clock.
    since: float


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A user's word that a plan may be carried out: this one, and no other."""

    cluster: str
    plan: str
    moves: tuple[ApprovedMove, ...]
    set_by: str
    #: Seconds since the epoch, by the database's clock.
    set_at: float
    #: Seconds since then when this was read, by the database's clock.
    age_seconds: float


class ApprovalStore(StoreAccess):
    """What waits and what was approved of, in one engine's clusters, in a database."""

    def offer(
        self,
        cluster: str,
        plan: str,
        moves: tuple[ApprovedMove, ...],
        text: str,
        refusal_seconds: float = math.inf,
    ) -> bool:
        """Let a plan wait in place of the one that waited in its cluster; whether it is another one.

        One that a user has refused within `refusal_seconds` does not wait, and neither does any other.
        As `withdraw` it is the leader's: raises `LeaseLost` if it leads no more.
        """
        with self._leading() as rows:
            if plan in _refused(rows, refusal_seconds):
                rows.remove(waiting_plans, waiting_plans.c.cluster == cluster)
                return False
            present = rows.select(waiting_plans, waiting_plans.c.plan)
            if rows.execute(present.where(waiting_plans.c.cluster == cluster)).scalar() == plan:
                return False
            values = {"plan": plan, "moves": moves, "text": text, "since": now()}
            rows.put(waiting_plans, {"cluster": cluster}, values)
        return True

    def withdraw(self, cluster: str) -> None:
        """Let no plan wait in a cluster."""
        here = waiting_plans.c.cluster == cluster
        with self._reading() as rows:
            if rows.execute(rows.select(waiting_plans).where(here)).one_or_none() is None:
                return
        with self._leading() as rows:
            rows.remove(waiting_plans, here)

    def waiting(self) -> tuple[WaitingPlan, ...]:
        """List the plans that wait, the longest first."""
        with self._reading() as rows:
            order = (waiting_plans.c.since, waiting_plans.c.cluster)
            return rows.records(WaitingPlan, rows.select(waiting_plans).order_by(*order))

    def approve(self, plan: str, *, set_by: str) -> WaitingPlan | None:
        """Approve of a plan, in place of what was approved of in its cluster; None if it does not wait."""
        with self._transaction() as rows:
            found = _pop_waiting(rows, plan)
            if found is not None:
                _approve(rows, found.cluster, plan, found.moves, set_by)
                _record(rows, UserActionKind.APPROVE, found.cluster, plan, set_by)
        return found

    def refuse(self, plan: str, *, set_by: str, reason: str) -> WaitingPlan | None:
        """Have a plan wait no more, and say why; None if it does not wait."""
        with self._transaction() as rows:
            found = _pop_waiting(rows, plan)
            if found is not None:
                details = tuple(filter(None, [reason]))
                _record(rows, UserActionKind.REFUSE, found.cluster, plan, set_by, details=details)
        return found

    def refused(self, within_seconds: float) -> dict[str, str]:
        """List the plans of which the last word, within so long, was a refusal; each with that, in words."""
        with self._reading() as rows:
            return _refused(rows, within_seconds)

    def order(
        self,
        cluster: str,
        plan: str,
        moves: tuple[ApprovedMove, ...],
        *,
        set_by: str,
        undoes: str | None = None,
    ) -> None:
        """Approve of a plan that need not wait, in place of what was approved of in its cluster.

        `undoes` is the plan that it takes back, if any.
        """
        with self._transaction() as rows:
            _approve(rows, cluster, plan, moves, set_by)
            kind = UserActionKind.APPLY if undoes is None else UserActionKind.UNDO
            _record(rows, kind, cluster, plan, set_by, undoes or "")

    def revoke(self, approval: Approval) -> None:
        """Let an approval count no more, unless another has taken its place. It is the leader's."""
        here = approvals.c.cluster == approval.cluster, approvals.c.set_at == approval.set_at
        with self._leading() as rows:
            rows.remove(approvals, *here)

    def approvals(self) -> tuple[Approval, ...]:
        """List what was approved of last in each cluster."""
        columns = (*approvals.columns, age(approvals.c.set_at))
        with self._reading() as rows:
            return rows.records(Approval, rows.select(approvals, *columns).order_by(approvals.c.cluster))


def _approve(rows: EngineRows, cluster: str, plan: str, moves: tuple[ApprovedMove, ...], set_by: str) -> None:
    values = {"plan": plan, "moves": moves, "set_by": set_by, "set_at": now()}
    rows.put(approvals, {"cluster": cluster}, values)


def _pop_waiting(rows: EngineRows, plan: str) -> WaitingPlan | None:
    """Have a plan wait no more; None if another was quicker, or it waits no more anyway."""
    found = rows.records(WaitingPlan, rows.select(waiting_plans).where(waiting_plans.c.plan == plan))
    return found[0] if found and rows.remove(waiting_plans, waiting_plans.c.plan == plan) == 1 else None


def _refused(rows: EngineRows, within_seconds: float) -> dict[str, str]:
    said = user_actions.c.kind.in_([kind.value for kind in (*_CARRIED_OUT, UserActionKind.REFUSE)])
    words = rows.select(user_actions).where(said, user_actions.c.created > now() - within_seconds)
    last = {one.plan or "": one for one in rows.records(UserAction, words.order_by(user_actions.c.id))}
    return {plan: one.sentence for plan, one in last.items() if one.kind is UserActionKind.REFUSE}


def _record(
    rows: EngineRows,
    kind: UserActionKind,
    cluster: str,
    plan: str,
    login: str,
    subject: str = "",
    details: tuple[str, ...] = (),
) -> None:
    document = rows.execute(rows.select(plans, plans.c.document).where(plans.c.id == plan)).scalar() or {}
    where = {"cluster": cluster, "cluster_name": document.get("cluster", {}).get("name", cluster)}
    record(rows, Act(kind=kind, login=login, plan=plan, subject=subject, details=details, **where))
