"""Remembers in how many cycles each rule was seen broken: what is repaired soon is not worth a migration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.rows import EngineRows
from ovirt_placement.store.schema import broken_rules, now

#: Two looks that are so much of a cycle apart are of two cycles: no look comes at the second.
_NEARLY = 0.9
#: Databases limit the parameters of one statement.
_AT_ONCE = 500


class BrokenRuleStore(StoreAccess):
    """The broken rules of one engine's clusters, in a database; rules are known by keys."""

    def look(self, cluster: str, rules: Collection[str], *, cycle_seconds: float, enough: int) -> None:
        """Write down which rules of a cluster are broken now, and forget those that are not.

        A look counts for a rule if the last that did is about a cycle ago, and until there were `enough`.
        Raises `LeaseLost` if this is to be a leader's, and is not.
        """
        table = broken_rules.c
        with self._leading() as rows:
            present = rows.select(broken_rules, table.rule).where(table.cluster == cluster)
            known = set(rows.execute(present).scalars())
            for gone in _chunks(sorted(known.difference(rules))):
                rows.execute(rows.delete(broken_rules).where(table.cluster == cluster, table.rule.in_(gone)))
            if known:
                self._count(rows, cluster, cycle_seconds, enough)
            first = {"cycles": 1, "counted": now()}
            for new in sorted(set(rules) - known):
                values = {"cluster": cluster, "rule": new, **first}
                rows.execute(rows.insert_or_update(broken_rules, values, first))

    def cycles(self) -> dict[str, int]:
        """Tell in how many cycles each rule that is broken was seen so, by its key."""
        with self._transaction() as rows:
            found = rows.execute(rows.select(broken_rules, broken_rules.c.rule, broken_rules.c.cycles))
            return {row.rule: row.cycles for row in found}

    @staticmethod
    def _count(rows: EngineRows, cluster: str, cycle_seconds: float, enough: int) -> None:
        table = broken_rules.c
        due = table.counted <= now() - _NEARLY * cycle_seconds
        counting = rows.update(broken_rules).where(table.cluster == cluster, table.cycles < enough, due)
        rows.execute(counting.values(cycles=table.cycles + 1, counted=now()))


def _chunks(rules: Sequence[str]) -> Iterator[Sequence[str]]:
    return (rules[start : start + _AT_ONCE] for start in range(0, len(rules), _AT_ONCE))
