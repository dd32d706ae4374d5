"""What is wrong with placement rules: by themselves, with whom they name, and with one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ovirt_placement.answers.contradictions import NEEDS_PLANNER, ContradictionFound, judge_rules, sentence
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.sentences import listed
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import NamedGroup, named_group, named_groups
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_rules.in_force import mistakes, not_known_yet
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.rules.placement_rules.wrong import what_is_wrong


class RuleProblem(Record, frozen=True, omit_defaults=False):
    """Something that is wrong with a rule."""

    rule: NamedGroup
    sentence: str


class RulesCheckDocument(Document, frozen=True, kw_only=True, tag="rules_check"):
    """What is wrong with placement rules."""

    rules: int
    problems: tuple[RuleProblem, ...]
    #: Rules of which nobody knows yet who they are about, in a sentence each.
    not_known_yet: tuple[str, ...] = ()
    #: Hard rules that cannot be satisfied together, a placement rule among them.
    contradictions: tuple[ContradictionFound, ...] = ()
    #: Sets for which it is not known whether they can be satisfied: the work budget ended.
    unknown: tuple[tuple[NamedGroup, ...], ...] = ()
    #: Sets that cannot be judged without OR-Tools, which is not installed.
    unjudged: tuple[tuple[NamedGroup, ...], ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is known to be wrong."""
        return not self.problems and not self.contradictions


def rules_check(snapshot: Snapshot) -> RulesCheckDocument:
    """Every mistake, every word that names nothing, and every rule that is impossible by its numbers."""
    return RulesCheckDocument(
        rules=len(snapshot.placement_rules),
        problems=tuple(
            RuleProblem(named_group(found.rule.id, snapshot), sentence)
            for found in resolved_rules(snapshot)
            for sentence in (*mistakes(found.rule), *what_is_wrong(snapshot, found))
        ),
        not_known_yet=tuple(
            why for cluster in snapshot.clusters for why in not_known_yet(snapshot, cluster.id)
        ),
    )


def rules_check_together(snapshot: Snapshot) -> RulesCheckDocument:
    """The same, and which rules cannot be satisfied with one another, groups and keys: that takes longer."""
    check = rules_check(snapshot)
    clusters = dict.fromkeys(found.cluster for found in resolved_rules(snapshot) if found.cluster is not None)
    judged = [judge_rules(snapshot, cluster) for cluster in clusters]
    impossible = {one.rule.id for one in check.problems}

    def of_rules(sets: Iterable[tuple[str, ...]]) -> tuple[tuple[NamedGroup, ...], ...]:
        named = (named_groups(one, snapshot) for one in sets)
        return tuple(one for one in named if any(group.is_rule for group in one))

    return replace(
        check,
        contradictions=tuple(
            one
            for of_cluster in judged
            for one in of_cluster.contradictions
            if any(group.is_rule for group in one.groups)
            and not (len(one.groups) == 1 and not one.keys_of and one.groups[0].id in impossible)
        ),
        unknown=of_rules(one for of_cluster in judged for one in of_cluster.unknown),
        unjudged=of_rules(one for of_cluster in judged for one in of_cluster.unjudged),
    )


def lines(answer: RulesCheckDocument) -> Iterator[str]:
    """In a line each what is wrong, and what is not known."""
    yield from (f"{one.rule.name}: {one.sentence}" for one in answer.problems)
    yield from map(sentence, answer.contradictions)
    yield from open_questions(answer)
    if answer.sound and not answer.not_known_yet:
        yield f"No mistakes in {answer.rules} placement rules."


def open_questions(answer: RulesCheckDocument) -> Iterator[str]:
    """What is not known whether it can be satisfied, and why."""
    yield from (f"not known yet: {one}" for one in answer.not_known_yet)
    for sets, why in ((answer.unknown, "the work allowed ended"), (answer.unjudged, NEEDS_PLANNER)):
        for one in sets:
            names = listed([group.title for group in one])
            yield f"not known whether they can be satisfied together: {names} ({why})"
