"""`ovirt-placement rules`: placement rules, which ask of VMs what no affinity group can."""

from __future__ import annotations

import argparse
from pathlib import Path

from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.foresight import add_foresight
from ovirt_placement.cli.question import add_question
from ovirt_placement.cli.rules import change, listing
from ovirt_placement.cli.rules.arguments import add_fields
from ovirt_placement.rules.placement_rules.in_force import EVERY_KIND

DESCRIPTION = """\
Placement rules ask what no affinity group can: a limit of VMs per host or per failure domain, even
spread, exclusive hosts, licences; and which VMs restart after which others. See docs/placement-rules.md.
"""
LIST = """\
List the placement rules: whether each is satisfied, and who changed it last and when.
"""
SHOW = """\
Show rules with their VMs, hosts, failure domains, and the VMs that violate them.
"""
CHECK = """\
List mistakes of the rules, or of those of a file: missing fields, names that match nothing, rules that no
placement can satisfy. The exit status is 1 if there is any.
"""
ADD = """\
Add a rule. A rule with mistakes, or that no placement can satisfy, is refused.
"""
EDIT = """\
Change a rule: what is not given stays.
"""
REMOVE = """\
Remove rules.
"""
EXPORT = """\
Print rules as YAML (with --json as JSON), as `rules import` and `rules apply` read them.
"""
IMPORT = """\
Add or replace the rules of a YAML file; others stay.
"""
APPLY = """\
As import, but also remove the rules that the file lacks.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("rules", help=summary, description=DESCRIPTION)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_questions(actions)
    adding = add_command(actions, "add", "add a rule", ADD, change.add, ADD_EXAMPLES)
    adding.add_argument("name", metavar="NAME")
    kinds = "; ".join(f"{kind.name}: {kind.summary}" for kind in EVERY_KIND.values())
    adding.add_argument("--kind", choices=tuple(EVERY_KIND), metavar="KIND", required=True, help=kinds)
    add_fields(adding, required=True)
    editing = add_command(actions, "edit", "change a rule", EDIT, change.edit, EDIT_EXAMPLES)
    editing.add_argument("name", metavar="NAME")
    add_fields(editing, required=False)
    removing = add_command(actions, "remove", "remove rules", REMOVE, change.remove, REMOVE_EXAMPLES)
    removing.add_argument("names", metavar="NAME", nargs="+")
    importing = add_command(
        actions, "import", "write the rules of a file", IMPORT, change.import_rules, IMPORT_EXAMPLES
    )
    applying = add_command(
        actions, "apply", "have the rules of a file, and no others", APPLY, change.apply, APPLY_EXAMPLES
    )
    for one in (importing, applying):
        one.add_argument("file", metavar="FILE", type=Path)
    for one in (adding, editing, removing, importing, applying):
        _add_writing(one)


def _add_questions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listed = add_command(actions, "list", "the rules that stand", LIST, listing.run, LIST_EXAMPLES)
    showing = add_command(
        actions, "show", "rules with all that is known", SHOW, listing.show_rules, SHOW_EXAMPLES
    )
    showing.add_argument("names", metavar="NAME", nargs="*")
    checking = add_command(
        actions, "check", "what is wrong with rules", CHECK, listing.check_rules, CHECK_EXAMPLES
    )
    checking.add_argument("file", metavar="FILE", type=Path, nargs="?", help="check the rules of this file")
    exporting = add_command(
        actions, "export", "print all rules as YAML", EXPORT, listing.export, EXPORT_EXAMPLES
    )
    for one in (listed, showing, checking, exporting):
        add_question(one)


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--force", action="store_true", help="also write rules with mistakes, or that cannot be satisfied"
    )
    add_foresight(parser)
    add_config(parser)
    add_change(parser)


LIST_EXAMPLES = """\
  ovirt-placement rules list
"""
SHOW_EXAMPLES = """\
  ovirt-placement rules show web
"""
CHECK_EXAMPLES = """\
  ovirt-placement rules check rules.yaml      # before they are applied
"""
ADD_EXAMPLES = """\
  ovirt-placement rules add db --kind at_most_per_host --cluster blue --vms tag:db --most 2
  ovirt-placement rules add web --kind spread --cluster blue --vms tag:web --max-skew 1 --domain-tags rack-
  ovirt-placement rules add oracle --kind capacity --cluster blue --hosts h1 h2 --most 32 --counted vcpus
"""
EDIT_EXAMPLES = """\
  ovirt-placement rules edit db --most 3 --what-if
"""
REMOVE_EXAMPLES = """\
  ovirt-placement rules remove db
"""
EXPORT_EXAMPLES = """\
  ovirt-placement rules export > rules.yaml
"""
IMPORT_EXAMPLES = """\
  ovirt-placement rules import rules.yaml --dry-run
"""
APPLY_EXAMPLES = """\
  ovirt-placement rules apply rules.yaml --fail-if 'moves>5,failures<1'
"""
