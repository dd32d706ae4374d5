"""Changes of placement rules: whether they may be made, for commands and for the page, and what became."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ovirt_placement.answers.conflicts import sentence
from ovirt_placement.answers.document import DRY_RUN, ChangeDocument
from ovirt_placement.answers.rules import asked, open_questions, rules_check_together, strength
from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.on_demand import read_searches, searches_of
from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.model.record import check_text
from ovirt_placement.rules.placement_rules.in_force import EVERY_KIND, mistakes, rule_problems
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from ovirt_placement.store.placement_rules import RuleChange
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


def rule_kinds() -> dict[str, str]:
    return {name: kind.summary for name, kind in EVERY_KIND.items()}


def read_engine(config: Config, rules: Iterable[PlacementRule], patience_seconds: float) -> Snapshot:
    """The engine's state with what these rules may name; tags and searches are asked of it alone."""
    every = tuple(rules)
    tagged = any(rule.names_vm_tags or rule.names_host_tags for rule in every)
    searches = searches_of(every)
    found = None if tagged else inventory.snapshot(config=config, max_age=0.0, deadline=patience_seconds)
    if found is not None and not searches:
        return found
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.topology import read_snapshot

    with EngineConnection(config.engine) as connection:
        if found is None:
            found = read_snapshot(connection, statistics=True, devices=True)
        return replace(found, member_searches=read_searches(connection, searches))


def objections(engine: Snapshot, standing: Mapping[str, PlacementRule], change: RuleChange) -> list[str]:
    """Whom rules that come name that is not there, and that they cannot be satisfied, in sentences."""
    snapshot, names = _after(engine, standing, change), {rule.name for rule in change.put}
    found = [
        f"placement rule {found.rule.name}: {wrong}"
        for found in resolved_rules(snapshot)
        if found.rule.name in names
        for wrong in rule_problems(snapshot, found)
    ]
    ids = {rule.id for rule in change.put}
    for one in rules_check_together(snapshot).contradictions if ids else ():
        if not ids.isdisjoint(group.id for group in one.groups):
            found.append(sentence(one, whole=False))
    return found


def unproven(engine: Snapshot, standing: Mapping[str, PlacementRule], change: RuleChange) -> list[str]:
    """Of which rules it is not known whether they can be satisfied, in sentences."""
    if not change.put:
        return []
    return list(open_questions(rules_check_together(_after(engine, standing, change))))


def _after(engine: Snapshot, standing: Mapping[str, PlacementRule], change: RuleChange) -> Snapshot:
    """With all rules as they are to stand."""
    after = {**standing, **{rule.name: rule for rule in change.put}}
    rules = tuple(rule for name, rule in sorted(after.items()) if name not in change.remove)
    return replace(engine, placement_rules=rules)


def refuse_mistakes(rules: tuple[PlacementRule, ...]) -> None:
    """Raises `UserError` for a rule that could not be in force, or has no legible name."""
    for rule in rules:
        if not rule.name.strip():
            raise UserError("a placement rule needs a name")
        check_text(rule.name)
        for mistake in mistakes(rule):
            like = "" if rule.kind in EVERY_KIND else nearest(rule.kind, EVERY_KIND)
            raise UserError(f"placement rule {rule.name}: {mistake}{like}")


# -- What was changed of placement rules, or would be.
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


def change_lines(answer: RulesChangeDocument) -> Iterator[str]:
    yield from (f"added {rule.name}: {asked(rule)}, {strength(rule)}" for rule in answer.added)
    yield from (f"changed {rule.name}: {asked(rule)}, {strength(rule)}" for rule in answer.edited)
    yield from (f"removed {name}" for name in answer.removed)
    if not answer.changed:
        yield "Nothing to change."
    elif answer.dry_run:
        yield DRY_RUN
    yield from (f"note: {problem}" for problem in (*answer.problems, *answer.unproven))
