"""The store's clock, the database's own: where it was set back, what lies in the future counts as now."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Column, Float, Table, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from ovirt_placement.store.rows import EngineRows
from ovirt_placement.store.schema import (
    approvals,
    cycles,
    intents,
    pauses,
    resumptions,
    user_actions,
    violated_rules,
    waiting_plans,
)

#: A clock that is only kept in step is never set back so far at once.
_SECONDS: Final = 1.0
#: The moment of writing that ages count from, with another one of the same row that keeps its distance.
_MOMENTS: Final[tuple[tuple[Table, str, str | None], ...]] = (
    (intents, "updated", "created"),
    (intents, "created", None),  # of what was changed since
    (violated_rules, "counted", None),
    (approvals, "set_at", None),
    (waiting_plans, "since", None),
    (pauses, "set_at", "until"),
    (resumptions, "set_at", None),
    (user_actions, "updated", "created"),
    (user_actions, "created", None),
    (cycles, "ended", None),
)


class now(FunctionElement[float]):  # noqa: N801 - reads as the SQL function that it is
    """Seconds since the epoch, by the database's clock."""

    type = Float(53)
    inherit_cache = True


@compiles(now, "sqlite")
def _now_of_sqlite(element: now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _now_of_postgresql(element: now, compiler: Any, **options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS double precision)"


def is_set_back(rows: EngineRows) -> bool:
    """Whether anything lies in the future."""
    future = [rows.select(table).where(table.c[moment] > now() + _SECONDS) for table, moment, _ in _MOMENTS]
    return bool(rows.execute(select(or_(*(one.exists() for one in future)))).scalar())


def settle(rows: EngineRows) -> None:
    """Move what lies in the future to now."""
    for table, moment, other in _MOMENTS:
        written: Column[float] = table.c[moment]
        moved = {moment: now()} if other is None else {moment: now(), other: table.c[other] - written + now()}
        rows.execute(rows.update(table).where(written > now() + _SECONDS).values(moved))
