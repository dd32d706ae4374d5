"""Changes of placement rules: whether they may be made, for commands and for the page, and what became."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ovirt_placement.answers.conflicts import sentence
from ovirt_placement.answers.document import DRY_RUN, ChangeDocument
from ovirt_placement.answers.rules import asked, open_questions, rules_check, strength
from ovirt_placement.config import Config
from ovirt_placement.engine.vms import ALL_DETAILS
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.on_demand import searches_of
from ovirt_placement.model import PlacementRule, RuleDomain, Snapshot
from ovirt_placement.model.record import check_text
from ovirt_placement.model.snapshot import HOST_STATISTICS, HOST_TAGS, VM_STATISTICS
from ovirt_placement.rules.placement_rules.in_force import EVERY_KIND, mistakes, rule_problems
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from ovirt_placement.store.placement_rules import RuleChange
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


def rule_kinds() -> dict[str, str]:
    return {name: kind.summary for name, kind in EVERY_KIND.items()}


def read_engine(
    config: Config,
    rules: tuple[PlacementRule, ...],
    patience_seconds: float,
    coming: tuple[PlacementRule, ...] = (),
) -> Snapshot:
    """The engine's state with these rules, and with what they and those to come may name.

    Tags and searches are asked of the engine alone; keys and what is pending are known here.
    """
    every = (*rules, *coming)
    tagged = any(rule.names_vm_tags or rule.names_host_tags for rule in every)
    searches = searches_of(every)
    found = inventory.snapshot(config=config, max_age=0.0, deadline=patience_seconds)
    if not tagged and not searches:
        return replace(found, placement_rules=rules)
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.topology import detailed, read_searches, read_statistics

    with EngineConnection(config.engine) as connection:
        if tagged:
            measured = read_statistics(connection, frozenset((HOST_TAGS, HOST_STATISTICS, VM_STATISTICS)))
            found = detailed(connection, measured.over(found), ALL_DETAILS)
        searched = read_searches(connection, searches)
        return replace(found, member_searches=searched, placement_rules=rules)


def objections(state: Snapshot, change: RuleChange) -> list[str]:
    """Whom rules that come name that is not there, and that they cannot be satisfied, in sentences."""
    snapshot, names = _after(state, change), {rule.name for rule in change.put}
    found = [
        f"placement rule {found.rule.name}: {problem}"
        for found in resolved_rules(snapshot)
        if found.rule.name in names
        for problem in rule_problems(snapshot, found)
    ]
    ids = {rule.id for rule in change.put}
    for contradiction in rules_check(snapshot, together=True).contradictions if ids else ():
        if not ids.isdisjoint(group.id for group in contradiction.groups):
            found.append(sentence(contradiction, whole=False))
    return found


def _after(state: Snapshot, change: RuleChange) -> Snapshot:
    return replace(state, placement_rules=change.applied(state.placement_rules))


def domain_named(text: str) -> RuleDomain:
    """A failure domain as people write it. Raises `UserError`."""
    name, _, hosts = map(str.strip, text.partition("="))
    words = tuple(word.strip() for word in hosts.split(",") if word.strip())
    if not name or not words:
        raise UserError(f'"{text}": write a failure domain as NAME=HOST,HOST')
    return RuleDomain(name=name, hosts=words)


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
    state: Snapshot, change: RuleChange, problems: Iterable[str], *, dry_run: bool
) -> RulesChangeDocument:
    """What a change makes of the rules that stood in a state."""
    before, put = {rule.name: rule for rule in state.placement_rules}, change.put
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
        unproven=tuple(open_questions(rules_check(_after(state, change), together=True))) if put else (),
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
