"""Remembers placement rules, who changed each last, and when, by the database's clock.

What is decided on the rules that stand is written in one transaction. Each writing gives placement keys and
rules another revision, by which readers know that there are others.
"""

import secrets
from collections.abc import Callable, Iterable

import msgspec
from sqlalchemy import text

from ovirt_placement.model import PlacementRule
from ovirt_placement.store.sql.access import EngineRows, StoreAccess, now
from ovirt_placement.store.sql.schema import key_revision, placement_rules
from ovirt_placement.store.user_actions import Act, UserActionKind, record

#: The first of an engine is drawn, so that a store that is made again is not taken for the former.
_FIRST_REVISIONS = range(1, 2**30)
_REVISE = text(
    "INSERT INTO key_revision (engine, revision) VALUES (:engine, :first)"
    " ON CONFLICT (engine) DO UPDATE SET revision = key_revision.revision + 1"
)


def read_revision(rows: EngineRows) -> int:
    """Return the revision of an engine's keys and rules: 0 as long as none were written."""
    found = rows.execute(rows.select(key_revision, key_revision.c.revision)).scalar_one_or_none()
    return int(found or 0)


def revise(rows: EngineRows) -> None:
    """Take the next revision: first of all, since who does so makes every other writer wait."""
    rows.execute(_REVISE, {"engine": rows.engine, "first": secrets.choice(_FIRST_REVISIONS)})


class SetRule(msgspec.Struct, frozen=True):
    """A rule with who changed it last, and when, in seconds since the epoch."""

    rule: PlacementRule
    changed_by: str
    changed_at: float


class RuleChange(msgspec.Struct, frozen=True):
    """What is to become of the rules: first some go, by name, then others come, all or none."""

    put: tuple[PlacementRule, ...] = ()
    remove: tuple[str, ...] = ()

    def applied(self, rules: Iterable[PlacementRule]) -> tuple[PlacementRule, ...]:
        """What these rules become, by name."""
        kept = {rule.name: rule for rule in rules if rule.name not in self.remove}
        after = kept | {rule.name: rule for rule in self.put}
        return tuple(after[name] for name in sorted(after))


class RuleStore(StoreAccess):
    """The placement rules of one engine, in a database."""

    def all_rules(self) -> tuple[SetRule, ...]:
        """List the rules, by name."""
        with self._transaction() as rows:
            return set_rules(rows)

    def change(
        self, decide: Callable[[tuple[PlacementRule, ...]], RuleChange], *, changed_by: str
    ) -> RuleChange:
        """Make the change that is decided on the rules as they stand, and return it.

        From the decision until it is written no other client changes a rule. What the decision raises is
        passed on, and nothing is changed then. A rule that is put takes the place of the one of its name; one
        that says the same stays, with who changed it.
        """
        with self._transaction() as rows:
            revise(rows)
            standing = {found.rule.name: found.rule for found in set_rules(rows)}
            change = decide(tuple(standing.values()))
            details = []
            for name in change.remove:
                if standing.pop(name, None) is not None:
                    rows.remove(placement_rules, placement_rules.c.name == name)
                    details.append(f"removed {name}")
            for rule in change.put:
                if standing.get(rule.name) == rule:
                    continue
                standing[rule.name] = rule
                said = {"document": msgspec.to_builtins(rule), "changed_by": changed_by, "changed_at": now()}
                rows.put(placement_rules, {"name": rule.name}, said)
                details.append(f"set {rule.name}")
            if details:
                record(rows, Act(kind=UserActionKind.RULES, login=changed_by, details=tuple(details)))
        return change


def set_rules(rows: EngineRows) -> tuple[SetRule, ...]:
    """List the rules of an engine, by name."""
    found = rows.execute(rows.select(placement_rules).order_by(placement_rules.c.name))
    return tuple(
        SetRule(msgspec.convert(row.document, PlacementRule), row.changed_by, row.changed_at) for row in found
    )
