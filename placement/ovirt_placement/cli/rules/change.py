"""`ovirt-placement rules add`, `edit`, `remove`, `import`, `apply`: change placement rules, all or none."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.answers.conflicts import sentence
from ovirt_placement.answers.rules import (
    RulesCheckDocument,
    change_lines,
    open_questions,
    rules_change,
    rules_check_together,
)
from ovirt_placement.cli.foresight import stops
from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.rules.arguments import fields_of
from ovirt_placement.cli.rules.foreseen import foreseen
from ovirt_placement.cli.rules.state import read_engine, stored_rules
from ovirt_placement.cli.store import opened
from ovirt_placement.model import PlacementRule, RuleDomain, Snapshot, rule_file
from ovirt_placement.rules.placement_rules.in_force import EVERY_KIND, mistakes
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.rules.placement_rules.wrong import what_is_wrong
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument


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


_Standing = Mapping[str, PlacementRule]


def add(args: argparse.Namespace) -> int:
    """Run `rules add`."""

    def decide(standing: _Standing) -> RuleChange:
        if args.name in standing:
            raise UserError(f'there is a placement rule "{args.name}" already: rules edit changes it')
        rule = PlacementRule(**{"name": args.name, "kind": args.kind, **fields_of(args)})
        return RuleChange(put=(_with_domains(args, rule),))

    return _change(args, decide)


def edit(args: argparse.Namespace) -> int:
    """Run `rules edit`: what is not given stays."""

    def decide(standing: _Standing) -> RuleChange:
        return RuleChange(put=(replace(_known(args.name, standing), **fields_of(args)),))

    return _change(args, decide)


def remove(args: argparse.Namespace) -> int:
    """Run `rules remove`."""

    def decide(standing: _Standing) -> RuleChange:
        return RuleChange(remove=tuple(_known(name, standing).name for name in args.names))

    return _change(args, decide)


def import_rules(args: argparse.Namespace) -> int:
    """Run `rules import`: rules that the file lacks stay."""
    rules = rule_file.load(args.file)
    return _change(args, lambda standing: RuleChange(put=rules))


def apply(args: argparse.Namespace) -> int:
    """Run `rules apply`: afterwards there are the rules of the file, and no others."""
    rules = rule_file.load(args.file)
    names = {rule.name for rule in rules}
    return _change(
        args,
        lambda standing: RuleChange(put=rules, remove=tuple(sorted(standing.keys() - names))),
    )


def _change(args: argparse.Namespace, decide: Callable[[_Standing], RuleChange]) -> int:
    """Make the change that is decided on the rules as they stand, and report it.

    Raises `UserError` for a rule that could not be in force, and, without `--force`, for one that names what
    is not there or that cannot be satisfied; then nothing is changed.
    """
    standing = {one.rule.name: one.rule for one in stored_rules(args)}
    intended = decide(standing)
    refuse_mistakes(intended.put)
    engine = read_engine(args, (*standing.values(), *intended.put))
    checking = Checking(engine)
    # Before the store is locked: there it is only looked up, unless other rules were written meanwhile.
    speaks_against = checking.wrong(standing, intended)
    before: dict[str, PlacementRule] = {}
    problems: list[str] = []

    def judged(rules: tuple[PlacementRule, ...]) -> RuleChange:
        before.update({rule.name: rule for rule in rules})
        change = decide(before)
        refuse_mistakes(change.put)
        problems[:] = checking.wrong(before, change)
        if problems and not args.force:
            raise UserError(f"{'; '.join(problems[:5])}; --force writes it nevertheless")
        return change

    def look() -> WhatIfDocument:
        now = replace(engine, placement_rules=tuple(standing.values()))
        return foreseen(args, now, intended, tuple(speaks_against))

    if (status := stops(args, look)) is not None:
        return status
    if args.dry_run:
        change = judged(tuple(standing.values()))
    else:
        with opened(RuleStore, args) as store:
            change = store.change(judged, changed_by=login_name())
    unproven = checking.unproven(before, change)
    answer = rules_change(before, change, problems, unproven, dry_run=args.dry_run)
    if args.json:
        show_json(answer)
    else:
        print("\n".join(change_lines(answer)))
    return 0


def _known(name: str, standing: _Standing) -> PlacementRule:
    if name not in standing:
        raise UserError(f'no placement rule "{name}"{nearest(name, standing)}')
    return standing[name]


def _with_domains(args: argparse.Namespace, rule: PlacementRule) -> PlacementRule:
    """With the failure domains of the configuration, where the kind needs some and none are given."""
    kind = EVERY_KIND.get(rule.kind)
    if kind is None or not kind.in_domains or rule.domains or rule.domain_tags:
        return rule
    known = config.load(args.config).ha
    listed = tuple(RuleDomain(name=one.name, hosts=one.hosts) for one in known.domains)
    return replace(rule, domain_tags=known.domain_tags, domains=listed)
