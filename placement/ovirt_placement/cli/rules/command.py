"""`ovirt-placement rules`: placement rules, which ask of VMs what no affinity group can."""

from __future__ import annotations

import argparse
from pathlib import Path

from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.foresight import add_foresight
from ovirt_placement.cli.question import add_question
from ovirt_placement.cli.rules import change, listing
from ovirt_placement.cli.rules.arguments import add_fields
from ovirt_placement.rules.placement_rules.kinds import EVERY_KIND

DESCRIPTION = """\
Placement rules ask what no affinity group can: a limit of VMs per host or per failure domain, even
spread, exclusive hosts, licences; and which VMs restart after which others. See docs/placement-rules.md.
"""
LIST = """\
List the placement rules, who changed each last and when, and whether it is satisfied.
"""
SHOW = """\
Show rules with all that is known of each: the VMs and hosts that it means now, its failure domains, and which
VMs break it.
"""
CHECK = """\
Say what is wrong with the rules that stand, or with those of a file as if they did: what a kind lacks, words
that name nothing, and rules that no placement can satisfy. The exit status is 1 if there is anything.
"""
ADD = """\
Add a rule. It is refused if it could not be in force, if it names what is not there, or if no placement can
satisfy it.
"""
EDIT = """\
Change a rule: what is not given stays as it is.
"""
REMOVE = """\
Remove rules.
"""
EXPORT = """\
Print all rules as YAML (with --json as JSON), as `rules import` and `rules apply` read it.
"""
IMPORT = """\
Write the rules of a YAML file, in place of those of the same names; others stay.
"""
APPLY = """\
Make the rules what a YAML file says: rules that it lacks are removed, and those that are the same stay as
they are. A second run changes nothing.
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
        "--force", action="store_true", help="also write what names nothing or cannot be satisfied"
    )
    add_foresight(parser)
    add_config(parser)
    add_change(parser)


LIST_EXAMPLES = """\
  ovirt-placement rules list
  ovirt-placement rules list --state cluster.json
"""
SHOW_EXAMPLES = """\
  ovirt-placement rules show web
"""
CHECK_EXAMPLES = """\
  ovirt-placement rules check
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
  ovirt-placement rules apply rules.yaml --dry-run
  ovirt-placement rules apply rules.yaml --fail-if 'moves>5,failures<1'
"""
