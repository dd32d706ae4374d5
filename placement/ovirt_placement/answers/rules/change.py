"""What was changed of placement rules, or would be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.rules.rule import asked, strength
from ovirt_placement.model import PlacementRule
from ovirt_placement.store.placement_rules import RuleChange


class RulesChangeDocument(Document, frozen=True, kw_only=True, tag="rules_change"):
    """What was added, changed and removed; nothing was if it was but tried."""

    added: tuple[PlacementRule, ...]
    changed: tuple[PlacementRule, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    dry_run: bool
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
    return RulesChangeDocument(
        added=tuple(rule for rule in put if rule.name not in before),
        changed=tuple(rule for rule in put if before.get(rule.name, rule) != rule),
        removed=change.remove,
        unchanged=tuple(rule.name for rule in put if before.get(rule.name) == rule),
        dry_run=dry_run,
        problems=tuple(problems),
        unproven=tuple(unproven),
    )


def lines(answer: RulesChangeDocument) -> Iterator[str]:
    """In a line each what was added, changed and removed."""
    yield from (f"added {rule.name}: {asked(rule)}, {strength(rule)}" for rule in answer.added)
    yield from (f"changed {rule.name}: {asked(rule)}, {strength(rule)}" for rule in answer.changed)
    yield from (f"removed {name}" for name in answer.removed)
    if not (answer.added or answer.changed or answer.removed):
        yield "Nothing to change."
    elif answer.dry_run:
        yield "Nothing was written: this was a dry run."
    yield from (f"note: {problem}" for problem in (*answer.problems, *answer.unproven))
