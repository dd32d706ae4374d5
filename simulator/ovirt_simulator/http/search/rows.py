"""The rows that a search judges: a record, with one of each that it is joined with, and one tag of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ovirt_simulator.core.queries import Queries
from ovirt_simulator.http.search.columns.column import Columns
from ovirt_simulator.http.search.columns.tables import columns
from ovirt_simulator.http.search.expression import Condition, Expression, conditions
from ovirt_simulator.http.search.joins import VIA, joins
from ovirt_simulator.http.search.known import Known

#: Records by the name of their object, and tags by the name of what bears them and `.TAG`.
Row: TypeAlias = "Mapping[str, Any]"

_TAGGED = {"VM", "HOST", "USER"}


class Rows:
    """Makes the rows of one search, and reads fields of them."""

    def __init__(self, searched: str, where: Expression | None, queries: Queries, known: Known) -> None:
        self._searched = searched
        named = list(conditions(where))
        self._joined = _with_bridges(searched, [one.object for one in named])
        self._tagged = _tagged(named)
        self._joins = joins(queries, known) if self._joined else {}
        self._columns: dict[str, Columns] = {
            name: columns(name, queries) for name in (searched, *self._joined)
        }

    @property
    def columns(self) -> Columns:
        """The columns of what is searched."""
        return self._columns[self._searched]

    def of(self, record: Any) -> Iterable[Row]:
        rows: list[dict[str, Any]] = [{self._searched: record}]
        for name, source in self._joined.items():
            join = self._joins.get((source, name))
            rows = [
                row | {name: other}
                for row in rows
                for other in _or_none([] if join is None or row[source] is None else join(row[source]))
            ]
        for name in self._tagged:
            rows = [
                row | {f"{name}.TAG": tag}
                for row in rows
                for tag in _or_none([] if row[name] is None else row[name].tags)
            ]
        return rows

    def read(self, row: Row, object_name: str, field: str) -> Any:
        """Give what a row holds in a field; None where it has nothing."""
        if field == "TAG":
            return row.get(f"{object_name}.TAG")
        record = row[object_name]
        column = self._columns[object_name].get(field)
        return None if record is None or column is None else column(record)


def _or_none(found: Iterable[Any]) -> list[Any]:
    return list(found) or [None]


def _with_bridges(searched: str, named: Iterable[str]) -> dict[str, str]:
    """Give the objects to join, in order, each with the one that leads to it."""
    found: dict[str, str] = {}
    for name in named:
        bridge = VIA.get((searched, name))
        if bridge is not None:
            found[bridge] = searched
    for name in named:
        if name != searched and name not in found:
            found[name] = VIA.get((searched, name), searched)
    return found


def _tagged(named: Iterable[Condition]) -> list[str]:
    """Give the objects whose tags count: those of which the tag or any free text is asked."""
    return sorted(
        {
            one.object
            for one in named
            if one.object in _TAGGED and (one.field is None or one.field.name == "TAG")
        }
    )
