"""`ovirt-placement rules`: placement rules, which ask of VMs what no affinity group can."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.answers.question import AuthoredState
from ovirt_placement.answers.rule_changes import (
    change_lines,
    domain_named,
    objections,
    read_engine,
    refuse_mistakes,
    rules_change,
)
from ovirt_placement.cli.changes import add_writing, login_name, opened, show_change, stops, stored
from ovirt_placement.cli.questions import (
    PATIENCE_SECONDS,
    Reading,
    add_command,
    add_question,
    add_questions,
    read_state,
    show_file,
)
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import PlacementRule, RuleDomain, Snapshot, yaml_files
from ovirt_placement.rules.placement_rules.in_force import EVERY_KIND
from ovirt_placement.rules.placement_rules.limits import COUNTED
from ovirt_placement.store.placement_rules import RuleChange, RuleStore, SetRule
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.forecast import Change


# -- What a placement rule is made of, as options.
_WORDS = (
    "names or ids, tag:NAME, group:NAME (an affinity group), label:NAME (an affinity label) or search:SEARCH"
    " (of the engine)"
)
_NUMBERS = {
    "most": "the most VMs, vCPUs or MiB",
    "least": "the least number of failure domains",
    "max_skew": "by how many VMs failure domains may differ",
    "min_domains": "with fewer failure domains, the emptiest counts as empty",
}
#: What a rule is or is not: the option for what is usual, and the other one with its meaning.
_EITHER = {
    "enforcing": ("--hard", "--soft", "preferred, not enforced"),
    "continuous": ("--continuous", "--in-the-end", "migrations may violate it for a while"),
    "enabled": ("--enable", "--disable", "keep it without effect"),
}


def _add_fields(parser: argparse.ArgumentParser, *, required: bool) -> None:
    add = parser.add_argument
    add("--cluster", metavar="CLUSTER", required=required, help="by name or id")
    add("--vms", metavar="VM", nargs="+", help=f"the VMs: {_WORDS}")
    others = "the second set of a rule between two; of restart_after, those that restart first"
    add("--other-vms", metavar="VM", nargs="+", help=others)
    add("--hosts", metavar="HOST", nargs="+", help="hosts, named in the same ways")
    tags = "failure domains: host tags with these prefixes; else those of the configuration"
    add("--domain-tags", metavar="PREFIX", nargs="+", help=tags)
    hosts = "failure domains by their hosts"
    add("--domain", metavar="NAME=HOST,HOST", dest="domains", nargs="+", help=hosts)
    for field, text in _NUMBERS.items():
        add(f"--{field.replace('_', '-')}", metavar="N", type=_number, help=text)
    add("--counted", choices=COUNTED, help="what is counted of VMs; else vms")
    add("--priority", metavar="NUMBER", type=float, help="of a soft rule; else 1")
    for field, (usual, other, text) in _EITHER.items():
        either = parser.add_mutually_exclusive_group()
        either.add_argument(usual, dest=field, action="store_true", default=None, help="the default")
        either.add_argument(other, dest=field, action="store_false", help=text)


def _fields_of(args: argparse.Namespace) -> dict[str, Any]:
    """Those that were given. Raises `UserError` for domains that are none."""
    names = {*PlacementRule.__struct_fields__} - {"name", "kind", "domains"}
    given = {field: value for field in names if (value := getattr(args, field)) is not None}
    fields = {field: tuple(value) if isinstance(value, list) else value for field, value in given.items()}
    if args.domains is not None:
        fields["domains"] = tuple(map(domain_named, args.domains))
    return fields


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    return int(text)


# -- Where commands about placement rules take them from: a state file, or engine and store.
def read_rules(args: argparse.Namespace) -> AuthoredState:
    """The state that is asked about, with the rules of a file, or that the store holds at this moment."""
    if getattr(args, "file", None) is not None:
        rules = yaml_files.load_rules(args.file)
        if args.state is None:
            return AuthoredState(read_engine(config.load(args.config), rules, PATIENCE_SECONDS), {})
        return AuthoredState(replace(read_state(args, measured=Measured.NOTHING), placement_rules=rules), {})
    snapshot = read_state(args, measured=Measured.NOTHING)
    if args.state is not None:
        return AuthoredState(snapshot, {})
    authors = {one.rule.name: one for one in _stored_rules(args)}
    return AuthoredState(
        replace(snapshot, placement_rules=tuple(one.rule for one in authors.values())), authors
    )


def _stored_rules(args: argparse.Namespace) -> tuple[SetRule, ...]:
    return stored(RuleStore, args, RuleStore.all_rules, ())


# -- `ovirt-placement rules add`, `edit`, `remove`, `import`, `apply`: change placement rules, all or none.
_Standing = Mapping[str, PlacementRule]


def add(args: argparse.Namespace) -> int:
    def decide(standing: _Standing) -> RuleChange:
        if args.name in standing:
            raise UserError(f'there is a placement rule "{args.name}" already: rules edit changes it')
        rule = PlacementRule(**{"name": args.name, "kind": args.kind, **_fields_of(args)})
        return RuleChange(put=(_with_domains(args, rule),))

    return _change(args, decide)


def edit(args: argparse.Namespace) -> int:
    """Run `rules edit`: what is not given stays."""

    def decide(standing: _Standing) -> RuleChange:
        return RuleChange(put=(replace(_known(args.name, standing), **_fields_of(args)),))

    return _change(args, decide)


def remove(args: argparse.Namespace) -> int:
    def decide(standing: _Standing) -> RuleChange:
        return RuleChange(remove=tuple(_known(name, standing).name for name in dict.fromkeys(args.names)))

    return _change(args, decide)


def load(args: argparse.Namespace, *, removing: bool) -> int:
    """Run `rules import`; or `apply`, which removes all rules that the file lacks."""
    rules = yaml_files.load_rules(args.file)
    names = {rule.name for rule in rules}

    def decide(standing: _Standing) -> RuleChange:
        return RuleChange(put=rules, remove=tuple(sorted(standing.keys() - names)) if removing else ())

    return _change(args, decide)


def _change(args: argparse.Namespace, decide: Callable[[_Standing], RuleChange]) -> int:
    """Make the change that is decided on the rules as they stand, and report it.

    Raises `UserError` for a rule that could not be in force, and, without `--force`, for one that names what
    is not there or that cannot be satisfied; then nothing is changed.
    """
    standing = {one.rule.name: one.rule for one in _stored_rules(args)}
    intended = decide(standing)
    refuse_mistakes(intended.put)
    rules = tuple(standing.values())
    now = read_engine(config.load(args.config), rules, PATIENCE_SECONDS, intended.put)
    # Before the store is locked: there the verdict is remembered, unless other rules were written meanwhile.
    speaks_against = problems = objections(now, intended)
    before = now

    def judged(rules: tuple[PlacementRule, ...]) -> RuleChange:
        nonlocal before, problems
        before = replace(now, placement_rules=rules)
        change = decide({rule.name: rule for rule in rules})
        refuse_mistakes(change.put)
        problems = objections(before, change)
        if problems and not args.force:
            raise UserError(f"{'; '.join(problems[:5])}; --force writes it nevertheless")
        return change

    def previewed() -> tuple[Snapshot, Change]:
        from ovirt_placement.forecast import changed_rules  # planning takes long to load

        return now, changed_rules(now, intended, speaks_against)

    if (status := stops(args, previewed)) is not None:
        return status
    if args.dry_run:
        change = judged(rules)
    else:
        with opened(RuleStore, args) as store:
            change = store.change(judged, changed_by=login_name())
    answer = rules_change(before, change, problems, dry_run=args.dry_run)
    show_change(args, answer, change_lines(answer))
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


# -- `ovirt-placement rules`: placement rules, which ask of VMs what no affinity group can.
DESCRIPTION = """\
Placement rules ask what no affinity group can: a limit of VMs per host or per failure domain, even
spread, exclusive hosts, licences; and which VMs restart after which others. See docs/placement-rules.md.
"""
ADD = "Add a rule. A rule with mistakes, or that no placement can satisfy, is refused.\n"
EDIT = "Change a rule: what is not given stays.\n"
REMOVE = "Remove rules.\n"
EXPORT = "Print rules as YAML (with --json as JSON), as `rules import` and `rules apply` read them.\n"
IMPORT = "Add or replace the rules of a YAML file; others stay.\n"
APPLY = "As import, but also remove the rules that the file lacks.\n"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("rules", help=summary, description=DESCRIPTION)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    reading = Reading(lambda args, _: read_rules(args))
    add_questions(actions, reading, "rules list", "rules show", "rules check")
    command = partial(add_command, actions)
    add_question(command("export", "print all rules as YAML", EXPORT, _export, EXPORT_EXAMPLES))
    adding = command("add", "add a rule", ADD, add, ADD_EXAMPLES)
    adding.add_argument("name", metavar="NAME")
    kinds = "; ".join(f"{kind.name}: {kind.summary}" for kind in EVERY_KIND.values())
    adding.add_argument("--kind", choices=tuple(EVERY_KIND), metavar="KIND", required=True, help=kinds)
    _add_fields(adding, required=True)
    editing = command("edit", "change a rule", EDIT, edit, EDIT_EXAMPLES)
    editing.add_argument("name", metavar="NAME")
    _add_fields(editing, required=False)
    removing = command("remove", "remove rules", REMOVE, remove, REMOVE_EXAMPLES)
    removing.add_argument("names", metavar="NAME", nargs="+")
    loading = partial(load, removing=False), partial(load, removing=True)
    importing = command("import", "write the rules of a file", IMPORT, loading[0], IMPORT_EXAMPLES)
    applying = command("apply", "have the rules of a file, and no others", APPLY, loading[1], APPLY_EXAMPLES)
    for one in (importing, applying):
        one.add_argument("file", metavar="FILE", type=Path)
    forced = "also write rules with mistakes, or that cannot be satisfied"
    for one in (adding, editing, removing, importing, applying):
        one.add_argument("--force", action="store_true", help=forced)
        add_writing(one)


ADD_EXAMPLES = """\
  ovirt-placement rules add db --kind at_most_per_host --cluster blue --vms tag:db --most 2
  ovirt-placement rules add web --kind spread --cluster blue --vms tag:web --max-skew 1 --domain-tags rack-
  ovirt-placement rules add oracle --kind capacity --cluster blue --hosts h1 h2 --most 32 --counted vcpus
"""
EDIT_EXAMPLES = "  ovirt-placement rules edit db --most 3 --what-if\n"
REMOVE_EXAMPLES = "  ovirt-placement rules remove db\n"
EXPORT_EXAMPLES = "  ovirt-placement rules export > rules.yaml\n"
IMPORT_EXAMPLES = "  ovirt-placement rules import rules.yaml --dry-run\n"
APPLY_EXAMPLES = "  ovirt-placement rules apply rules.yaml --fail-if 'moves>5,failures<1'\n"


def _export(args: argparse.Namespace) -> int:
    return show_file(args, yaml_files.described("rules", read_rules(args).snapshot.placement_rules))
