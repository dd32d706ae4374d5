"""What is wrong with placement rules: by themselves, with whom they name, and with one another."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.answers.document import Document
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import NamedGroup, named_group
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_rules.in_force import mistakes
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.rules.placement_rules.satisfiable import why_impossible


class RuleProblem(Record, frozen=True, omit_defaults=False):
    """Something that is wrong with a rule."""

    rule: NamedGroup
    sentence: str


class RulesCheckDocument(Document, frozen=True, kw_only=True, tag="rules_check"):
    """What is wrong with placement rules."""

    rules: int
    problems: tuple[RuleProblem, ...]

    @property
    def sound(self) -> bool:
        return not self.problems


def rules_check(snapshot: Snapshot) -> RulesCheckDocument:
    """Every mistake, every word that names nothing, and every rule that no placement can satisfy."""
    return RulesCheckDocument(
        rules=len(snapshot.placement_rules),
        problems=tuple(
            RuleProblem(named_group(found.rule.id, snapshot), sentence)
            for found in resolved_rules(snapshot)
            for sentence in (*mistakes(found.rule), *found.problems, *why_impossible(snapshot, found))
        ),
    )


def lines(answer: RulesCheckDocument) -> Iterator[str]:
    """In a line each what is wrong."""
    yield from (f"{one.rule.name}: {one.sentence}" for one in answer.problems)
    if not answer.problems:
        yield f"No mistakes in {answer.rules} placement rules."
