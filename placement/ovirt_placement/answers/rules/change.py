"""What was changed of placement rules, or would be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.answers.rules.rule import asked, strength
from ovirt_placement.model import PlacementRule
from ovirt_placement.store.placement_rules import RuleChange


class RulesChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="rules_change"):
    """What was added, edited and removed."""

    #: The rules that are not the same afterwards.
    before: tuple[PlacementRule, ...]
    after: tuple[PlacementRule, ...]
    added: tuple[PlacementRule, ...]
    edited: tuple[PlacementRule, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    #: What is wrong with rules that were written nevertheless, in sentences.
    problems: tuple[str, ...]
    #: Of which rules it is not known whether they can be satisfied together, and why, in sentences.
    unproven: tuple[str, ...]


def rules_change(
    before: Mapping[str, PlacementRule],
    change: RuleChange,
    problems: Iterable[str],
    unproven: Iterable[str],
    *,
    dry_run: bool,
) -> RulesChangeDocument:
    """What a change makes of the rules that stood before, by their names."""
    put = change.put
    fresh = tuple(rule for rule in put if before.get(rule.name) != rule)
    gone = {*change.remove, *(rule.name for rule in fresh)}
    return RulesChangeDocument(
        changed=bool(fresh or change.remove),
        dry_run=dry_run,
        before=tuple(rule for name, rule in before.items() if name in gone),
        after=fresh,
        added=tuple(rule for rule in fresh if rule.name not in before),
        edited=tuple(rule for rule in fresh if rule.name in before),
        removed=change.remove,
        unchanged=tuple(rule.name for rule in put if before.get(rule.name) == rule),
        problems=tuple(problems),
        unproven=tuple(unproven),
    )


def lines(answer: RulesChangeDocument) -> Iterator[str]:
    """In a line each what was added, edited and removed."""
    yield from (f"added {rule.name}: {asked(rule)}, {strength(rule)}" for rule in answer.added)
    yield from (f"changed {rule.name}: {asked(rule)}, {strength(rule)}" for rule in answer.edited)
    yield from (f"removed {name}" for name in answer.removed)
    if not answer.changed:
        yield "Nothing to change."
    elif answer.dry_run:
        yield "Nothing was written: this was a dry run."
    yield from (f"note: {problem}" for problem in (*answer.problems, *answer.unproven))
