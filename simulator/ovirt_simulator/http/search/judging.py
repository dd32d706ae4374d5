"""Whether a row is what a search asks for: each condition a test, joined as they stand."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_simulator.core.queries import Queries
from ovirt_simulator.http.search import values
from ovirt_simulator.http.search.expression import Both, Condition, Expression
from ovirt_simulator.http.search.objects import OBJECTS
from ovirt_simulator.http.search.rows import Row, Rows
from ovirt_simulator.http.search.tags import tag_test

Judged = Callable[[Row], bool]

#: Fields that hold several names, with commas between them.
_LISTS = {("DISK", "VM_NAMES"), ("STORAGE", "DATACENTER")}


class Judge:
    """Makes tests of rows from expressions."""

    def __init__(self, rows: Rows, queries: Queries, *, case_sensitive: bool) -> None:
        self._rows = rows
        self._queries = queries
        self._case_sensitive = case_sensitive

    def judge(self, where: Expression) -> Judged:
        """Raises `SearchFailure` for what only the engine's database refuses."""
        if isinstance(where, Condition):
            return self._free_text(where) if where.field is None else self._condition(where)
        left, right = self.judge(where.left), self.judge(where.right)
        if isinstance(where, Both):
            return lambda row: left(row) and right(row)
        return lambda row: left(row) or right(row)

    def _condition(self, where: Condition) -> Judged:
        if where.field is None:
            raise ValueError("a condition on a field was expected")
        read, of, name = self._rows.read, where.object, where.field.name
        if (of, name) in _LISTS:
            test = values.one_of_several(where.relation, where.value, self._case_sensitive)
        elif name == "TAG" and where.relation == "=":
            test = tag_test(where.value, self._queries.tags())
        elif name == "APPS":
            test = values.text(where.relation, where.value, self._case_sensitive, anywhere=True)
        else:
            now = self._queries.now
            test = values.test(
                where.field, where.relation, where.value, case_sensitive=self._case_sensitive, now=now
            )
        return lambda row: test(read(row, of, name))

    def _free_text(self, where: Condition) -> Judged:
        test = values.free_text(where.relation, where.value, self._case_sensitive)
        names = [field.name for field in OBJECTS[where.object].fields.values() if field.free]
        read, of = self._rows.read, where.object
        return lambda row: any(test(read(row, of, name)) for name in names)
