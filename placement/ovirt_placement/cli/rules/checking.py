"""What speaks against rules that are to be written: each by itself, and with all others that stand."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from msgspec.structs import replace

from ovirt_placement.answers.contradictions import sentence
from ovirt_placement.answers.rules.check import RulesCheckDocument, open_questions, rules_check_together
from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.rules.placement_rules.in_force import mistakes
from ovirt_placement.rules.placement_rules.kinds import EVERY_KIND
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.rules.placement_rules.wrong import what_is_wrong
from ovirt_placement.store.placement_rules import RuleChange
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


class Checking:
    """Checks changes against one state of the engine; the same rules are judged together once."""

    def __init__(self, engine: Snapshot) -> None:
        self._engine = engine
        self._judged: dict[tuple[PlacementRule, ...], RulesCheckDocument] = {}

    def wrong(self, standing: Mapping[str, PlacementRule], change: RuleChange) -> list[str]:
        """Whom rules name that is not there, and that they cannot be satisfied, in sentences."""
        rules = _rules_after(standing, change)
        return [
            *_each(replace(self._engine, placement_rules=rules), {rule.name for rule in change.put}),
            *self._together(standing, change),
        ]

    def unproven(self, standing: Mapping[str, PlacementRule], change: RuleChange) -> list[str]:
        """Of which rules it is not known whether they can be satisfied, in sentences."""
        return list(open_questions(self._after(standing, change))) if change.put else []

    def _together(self, standing: Mapping[str, PlacementRule], change: RuleChange) -> Iterator[str]:
        put = {rule.id for rule in change.put}
        for one in self._after(standing, change).contradictions if put else ():
            if not put.isdisjoint(group.id for group in one.groups):
                yield sentence(one, whole=False)

    def _after(self, standing: Mapping[str, PlacementRule], change: RuleChange) -> RulesCheckDocument:
        """With all rules as they are to stand."""
        rules = _rules_after(standing, change)
        if rules not in self._judged:
            self._judged[rules] = rules_check_together(replace(self._engine, placement_rules=rules))
        return self._judged[rules]


def refuse_mistakes(rules: tuple[PlacementRule, ...]) -> None:
    """Raises `UserError` for a rule that could not be in force."""
    for rule in rules:
        for mistake in mistakes(rule):
            like = "" if rule.kind in EVERY_KIND else nearest(rule.kind, EVERY_KIND)
            raise UserError(f"placement rule {rule.name}: {mistake}{like}")


def _rules_after(standing: Mapping[str, PlacementRule], change: RuleChange) -> tuple[PlacementRule, ...]:
    after = {**standing, **{rule.name: rule for rule in change.put}}
    return tuple(rule for name, rule in sorted(after.items()) if name not in change.remove)


def _each(snapshot: Snapshot, names: Container[str]) -> Iterator[str]:
    """What is wrong with rules of these names, among all."""
    for found in resolved_rules(snapshot):
        for wrong in what_is_wrong(snapshot, found) if found.rule.name in names else ():
            yield f"placement rule {found.rule.name}: {wrong}"
