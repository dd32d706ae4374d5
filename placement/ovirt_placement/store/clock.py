"""The store's clock: the database's own, so that machines need not agree on the time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


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
