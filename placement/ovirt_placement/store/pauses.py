"""Remembers when nothing may be migrated: a user said so, for one cluster or all."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from sqlalchemy import ColumnElement, or_

from ovirt_placement.store.sql.access import EngineRows, StoreAccess, hold_back_writers, now
from ovirt_placement.store.sql.schema import pauses, resumptions
from ovirt_placement.store.user_actions import Act, UserActionKind, record
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
    """Migrations are paused where one was to begin."""


class PauseStore(StoreAccess):
    """The pauses of one engine, in a database."""

    def pause(
        self, cluster: str, *, cluster_name: str, reason: str, set_by: str, seconds: float | None
    ) -> None:
        """Let nothing be migrated in a cluster for so long, or for ever; the last word on it counts.

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
            rows.put(pauses, {"cluster": cluster}, values)
            how_long = "until resumed" if seconds is None else f"for {seconds / 3600:g} h"
            act = Act(kind=UserActionKind.PAUSE, login=set_by, cluster=cluster, cluster_name=cluster_name)
            details = (how_long, reason) if reason else (how_long,)
            record(rows, msgspec.structs.replace(act, details=details))

    def resume(self, cluster: str, *, set_by: str, cluster_name: str = "") -> Pause | None:
        """Take back the pause of a cluster, and let its breaker count no failure before this.

        `ALL_CLUSTERS` takes back the pause of all clusters, not those of single ones. `cluster_name` is for
        the record of who did it. Return the pause, if one was in force.
        """
        with self._transaction() as rows:
            lifted = _in_force(rows, pauses.c.cluster == cluster)
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
