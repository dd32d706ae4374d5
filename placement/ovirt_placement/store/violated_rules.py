"""Records in how many cycles each rule was violated: what is repaired soon needs no migration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.clock import now
from ovirt_placement.store.rows import EngineRows
from ovirt_placement.store.schema import violated_rules

#: Two looks that are so much of a cycle apart are of two cycles: no look comes at the second.
_NEARLY = 0.9
#: Databases limit the parameters of one statement.
_AT_ONCE = 500


class ViolatedRuleStore(StoreAccess):
    """The violated rules of one engine's clusters, in a database; rules are known by keys."""

    def look(self, cluster: str, rules: Collection[str], *, cycle_seconds: float, enough: int) -> None:
        """Write down which rules of a cluster are violated now, and forget those that are not.

        A look counts for a rule if the last that did is about a cycle ago, and until there were `enough`.
        Raises `LeaseLost` if there is anything to write, this is to be a leader's, and is not.
        """
        table = violated_rules.c
        if not rules:
            with self._reading() as rows:
                if rows.execute(rows.select(violated_rules).where(table.cluster == cluster)).first() is None:
                    return
        with self._leading() as rows:
            present = rows.select(violated_rules, table.rule).where(table.cluster == cluster)
            known = set(rows.execute(present).scalars())
            for gone in _chunks(sorted(known.difference(rules))):
                rows.execute(
                    rows.delete(violated_rules).where(table.cluster == cluster, table.rule.in_(gone))
                )
            if known:
                self._count(rows, cluster, cycle_seconds, enough)
            first = {"cycles": 1, "counted": now()}
            for new in sorted(set(rules) - known):
                values = {"cluster": cluster, "rule": new, **first}
                rows.execute(rows.insert_or_update(violated_rules, values, first))

    def cycles(self) -> dict[str, int]:
        """Return in how many cycles each rule that is violated was seen so, by its key."""
        with self._reading() as rows:
            found = rows.execute(rows.select(violated_rules, violated_rules.c.rule, violated_rules.c.cycles))
            return {row.rule: row.cycles for row in found}

    @staticmethod
    def _count(rows: EngineRows, cluster: str, cycle_seconds: float, enough: int) -> None:
        table = violated_rules.c
        due = table.counted <= now() - _NEARLY * cycle_seconds
        counting = rows.update(violated_rules).where(table.cluster == cluster, table.cycles < enough, due)
        rows.execute(counting.values(cycles=table.cycles + 1, counted=now()))


def _chunks(rules: Sequence[str]) -> Iterator[Sequence[str]]:
    return (rules[start : start + _AT_ONCE] for start in range(0, len(rules), _AT_ONCE))
