"""One process's access to the store, row by row: by its own clock, and under an epoch of the lease."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from ovirt_placement.config import Config
from ovirt_placement.store.sql.connections import parse_url, show_url
from ovirt_placement.store.sql.database import Database, StoreAway, StoreUnmade
from ovirt_placement.store.sql.schema import MOMENTS, ha_announcements, leases
from ovirt_service.errors import UserError
from ovirt_service.process import in_background

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

    ReturningInsert = postgresql.Insert | sqlite.Insert


_Record = TypeVar("_Record", bound=msgspec.Struct)

#: Databases limit the parameters of one statement.
_AT_ONCE = 500


class EngineRows:
    """Where every statement of a store begins, so that none forgets which engine it is about."""

    def __init__(self, connection: sa.Connection, engine: str) -> None:
        self._connection = connection
        self.engine = engine

    def select(self, table: sa.Table, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
        """Select these columns, or all but the engine's name."""
        return sa.select(*(columns or without_engine(table))).where(table.c.engine == self.engine)

    def add(self, table: sa.Table, values: Mapping[str, Any]) -> Any:
        """Insert a row; return its primary key."""
        return self.execute(sa.insert(table).values(engine=self.engine, **values)).inserted_primary_key

    def add_all(self, table: sa.Table, several: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, if there are any."""
        if several:
            self.execute(sa.insert(table).values(engine=self.engine), several)

    def change(self, table: sa.Table, *conditions: sa.ColumnElement[bool], **values: Any) -> int:
        """Let rows that meet the conditions have these values; return how many they are."""
        here = table.c.engine == self.engine
        return self.execute(sa.update(table).where(here, *conditions).values(values)).rowcount

    def remove(self, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        """Delete the rows that meet the conditions; return how many they were."""
        return self.execute(sa.delete(table).where(table.c.engine == self.engine, *conditions)).rowcount

    def remove_all(
        self, column: sa.Column[str], values: Sequence[str], *conditions: sa.ColumnElement[bool]
    ) -> None:
        """Delete the rows that have one of these values in a column, however many they are."""
        for start in range(0, len(values), _AT_ONCE):
            self.remove(column.table, column.in_(values[start : start + _AT_ONCE]), *conditions)

    def put(
        self, table: sa.Table, key: Mapping[str, Any], values: Mapping[str, Any], **otherwise: Any
    ) -> None:
        """Insert a row, or let the one that has this key have these values, and others otherwise."""
        self.execute(self.insert_or_update(table, {**key, **values}, {**values, **otherwise}))

    def insert_or_update(
        self,
        table: sa.Table,
        values: Mapping[str, Any],
        changes: Mapping[str, Any],
        where: sa.ColumnElement[bool] | None = None,
    ) -> ReturningInsert:
        """Insert a row, or make these changes of the one that has its key, if it meets the condition."""
        statement = _insert(self._connection, table).values(engine=self.engine, **values)
        return statement.on_conflict_do_update(index_elements=table.primary_key, set_=changes, where=where)

    def now(self) -> float:
        """The moment by the database's clock."""
        return float(self.execute(sa.select(now())).scalar_one())

    def execute(
        self, statement: sa.Executable, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> sa.CursorResult[Any]:
        return self._connection.execute(statement, values)

    def records(self, kind: type[_Record], query: sa.Select[Any]) -> tuple[_Record, ...]:
        """Read rows as records, by the names of their fields; columns that are none of these are left."""
        return tuple(record for _, record in self._records(kind, query))

    def records_by(
        self, column: sa.Column[str], keys: Sequence[str], kind: type[_Record], query: sa.Select[Any]
    ) -> Mapping[str, Sequence[_Record]]:
        """Read the rows that have one of these keys in a column, as records by their key."""
        found: defaultdict[str, list[_Record]] = defaultdict(list)
        for start in range(0, len(keys), _AT_ONCE):
            some = query.where(column.in_(keys[start : start + _AT_ONCE]))
            for fields, record in self._records(kind, some):
                found[fields[column.key]].append(record)
        return found

    def _records(
        self, kind: type[_Record], query: sa.Select[Any]
    ) -> Iterator[tuple[Mapping[str, Any], _Record]]:
        found = self.execute(query)
        names = [*map(str, found.keys())]  # the driver's are no plain texts
        for row in found:
            fields = dict(zip(names, row, strict=True))
            yield fields, msgspec.convert(fields, kind)


def without_engine(table: sa.Table) -> tuple[sa.ColumnElement[Any], ...]:
    """List the columns of a table but for the engine's name, which the caller knows.

    A row has them by their keys, also where the database has kept an earlier name.
    """
    return tuple(
        column if column.key == column.name else column.label(column.key)
        for column in table.columns
        if column.name != "engine"
    )


def _insert(connection: sa.Connection, table: sa.Table) -> ReturningInsert:
    """SQL has no word for what follows a conflict that both databases know, and SQLAlchemy none for any.

    A dialect takes long to load, and the one that is connected to is loaded.
    """
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


# -- The store's clock, the database's own: where it was set back, what lies in the future counts as now.
#: A clock that is only kept in step is never set back so far at once.
_SECONDS: Final = 1.0


class now(FunctionElement[float]):  # noqa: N801 - reads as the SQL function that it is
    """Seconds since the epoch, by the database's clock."""

    type = sa.Float(53)
    inherit_cache = True


def age(moment: sa.ColumnElement[float], name: str = "age_seconds") -> sa.Label[float]:
    """Seconds since a moment, by the database's clock; none where that was set back."""
    return sa.case((moment > now(), 0.0), else_=now() - moment).label(name)


@compiles(now, "sqlite")
def _now_of_sqlite(element: now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _now_of_postgresql(element: now, compiler: Any, **options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS double precision)"


def is_set_back(rows: EngineRows) -> bool:
    """Whether anything lies in the future."""
    future = [rows.select(moment.table).where(moment > now() + _SECONDS) for moment in MOMENTS]
    return bool(rows.execute(sa.select(sa.or_(*(one.exists() for one in future)))).scalar())


def settle(rows: EngineRows) -> None:
    """Move what lies in the future to now; of announcements the last one stays the last."""
    said = ha_announcements.c.created
    latest = rows.execute(rows.select(ha_announcements, sa.func.max(said))).scalar() or 0.0
    rows.change(ha_announcements, said > now() + _SECONDS, created=said - latest + now())
    for moment in MOMENTS:
        table, along = moment.table, moment.info["along"]
        kept = {along: table.c[along] - moment + now()} if along else {}
        rows.change(table, moment > now() + _SECONDS, **{moment.key: now()}, **kept)


# -- Writes under an epoch of the lease, or not at all: what a process that lost the lease would still write.
class LeaseLost(UserError):
    """The epoch that something was to be written under is over: another enforcer may have taken over."""


def fence(rows: EngineRows, epoch: int) -> None:
    """Let a transaction pass only if this epoch lasts until its end; else raise `LeaseLost`.

    It must be the first statement. It locks the lease, so no other takes it before what follows is written.
    """
    if rows.change(leases, *lasts(epoch), epoch=epoch) != 1:
        raise LeaseLost(f"epoch {epoch} of the lease of engine {rows.engine} is over: another may lead now")


def hold_back_writers(rows: EngineRows) -> None:
    """Wait for what is being written under the lease, and let nothing more be until this transaction ends.

    It must be the first statement. Without a lease nothing is written under one.
    """
    rows.change(leases, epoch=leases.c.epoch)


def lasts(epoch: int) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions on the lease: that it is in this epoch, and has not expired."""
    return leases.c.epoch == epoch, leases.c.expires > now()


# -- One process's access to the store: opened late, and again once it was closed.
class StoreAccess:
    """What every part of the store is reached through.

    Every method of a part raises `StoreAway` if the database is locked for longer than the patience,
    absent or out of reach, and `UserError` if a person must set something right.
    """

    def __init__(
        self,
        url: str,
        *,
        engine: str,
        patience_seconds: float = 0.05,
        create: bool = True,
        epoch: Callable[[], int] | None = None,
    ) -> None:
        """Name the database, and the engine whose rows are meant.

        With `create` false nothing is written: a database that does not exist is `StoreAway`. `epoch` gives
        the epoch of the lease in which that was read which is being written down: once that epoch is over,
        what only a leader may write raises `LeaseLost`.
        """
        self._epoch = epoch
        self._engine = engine
        self._open = partial(Database.opened, url, patience_seconds=patience_seconds, create=create)
        self._opening = threading.Lock()
        self._database: Database | None = self._open()

    def close(self) -> None:
        """Let go of the database; what is asked or written afterwards opens it again."""
        with self._opening:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def _opened(self) -> Database:
        with self._opening:
            if self._database is None:
                self._database = self._open()
            return self._database

    @contextmanager
    def _transaction(self) -> Iterator[EngineRows]:
        with self._opened().transaction() as connection:
            yield EngineRows(connection, self._engine)

    @contextmanager
    def _reading(self) -> Iterator[EngineRows]:
        with self._opened().reading() as connection:
            yield EngineRows(connection, self._engine)

    @contextmanager
    def _leading(self) -> Iterator[EngineRows]:
        """Begin a transaction that writes what only a leader may, where there is to be one."""
        with self._transaction() as rows:
            if self._epoch is not None:
                fence(rows, self._epoch())
            yield rows


# -- A part of the store of the engine that is configured, for as long as a person is served.
#: A person waits longer for a store that others write to than a placement can.
PERSON_SECONDS = 5.0

#: A store that waits for others says so by itself, a little later.
_MORE_SECONDS = 0.2
#: While this number of readings of a store hang, none is waited for.
_MOST_HANGING = 2
_hanging = Counter[str]()
_changing = threading.Lock()

_Part = TypeVar("_Part", bound=StoreAccess)
_Answer = TypeVar("_Answer")
_Nothing = TypeVar("_Nothing")


def opened(
    part: type[_Part], config: Config, *, patience_seconds: float = PERSON_SECONDS, create: bool = True
) -> closing[_Part]:
    """Open it, and close it at the end; without `create`, to read what is there."""
    url, engine = config.store.url, config.engine.name
    return closing(part(url, engine=engine, patience_seconds=patience_seconds, create=create))


def stored(
    part: type[_Part],
    config: Config,
    ask: Callable[[_Part], _Answer],
    nothing: _Nothing,
    *,
    patience_seconds: float = PERSON_SECONDS,
) -> _Answer | _Nothing:
    """What it answers; `nothing` where there is no store yet. Raises `StoreAway`."""

    def read() -> _Answer | _Nothing:
        try:
            with opened(part, config, patience_seconds=patience_seconds, create=False) as store:
                return ask(store)
        except StoreUnmade:
            return nothing

    return answered_within(config, patience_seconds, read)


def answered_within(config: Config, seconds: float, read: Callable[[], _Answer]) -> _Answer:
    """What is read of the store, in a thread: a server that is stopped keeps who asks it for ever.

    Raises `StoreAway` if that takes longer, at once while others wait for it in vain, and what `read` raises.
    """
    url = config.store.url
    if _hanging[url] >= _MOST_HANGING:
        raise _away(url, seconds)
    reading = in_background(read, "store")
    if not wait([reading], seconds + _MORE_SECONDS).done:
        _count_hanging(url, 1)
        reading.add_done_callback(lambda _: _count_hanging(url, -1))
        raise _away(url, seconds)
    return reading.result()


def _count_hanging(url: str, change: int) -> None:
    with _changing:
        _hanging[url] += change


def _away(url: str, seconds: float) -> StoreAway:
    return StoreAway(
        f"store {show_url(parse_url(url))}: has not answered within {seconds:g} s",
        "it, or its machine, hangs: systemctl status postgresql there shows whether it runs",
    )
