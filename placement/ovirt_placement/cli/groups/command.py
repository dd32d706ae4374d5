"""`ovirt-placement groups`: lists affinity groups, adds, changes and removes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from ovirt_placement.cli.arguments import add_change, add_command, add_config, add_json
from ovirt_placement.cli.foresight import add_foresight
from ovirt_placement.cli.groups import apply, change, export, listing, lost
from ovirt_placement.cli.question import add_cluster, add_question

DESCRIPTION = "Look at the engine's affinity groups and change them. See docs/groups.md."

LIST = """\
List affinity groups, violated ones first, with the hosts of running members. Of many, --all lists each with
all members.
"""
ADD = """\
Add an affinity group. What the engine would refuse is refused with the reason.
"""
EDIT = """\
Change an affinity group: what is not given stays. The engine checks the whole group again.
"""
IMPORT = """\
Add or change affinity groups as a YAML file says; others stay. If the engine would refuse one, nothing is
sent.
"""
APPLY = """\
As import, but also remove groups that the file lacks from the clusters that it names.
"""
EXPORT = """\
Print affinity groups as YAML (with --json as JSON), as `groups import` and `groups apply` read them.
"""
REMOVE = """\
Remove an affinity group.
"""
LOST = """\
List the affinity groups and labels that VMs lost by a change of cluster, as ovirt-enforcer recorded them.
An entry goes when the VM is a member of a group or label of that name again, and with --forget.
"""

LIST_EXAMPLES = """\
  ovirt-placement groups list --cluster blue --violated
  ovirt-placement groups list --vm web1 --all
"""
ADD_EXAMPLES = """\
  ovirt-placement groups add web-apart --cluster blue --vms-rule negative --vms-enforcing --vm web1 --vm web2
"""
EDIT_EXAMPLES = """\
  ovirt-placement groups edit web-apart --add-vm web3 --what-if
  ovirt-placement groups edit web-apart --no-vms-enforcing
"""
REMOVE_EXAMPLES = """\
  ovirt-placement groups remove web-apart
"""
IMPORT_EXAMPLES = """\
  ovirt-placement groups import groups.yaml --dry-run
"""
APPLY_EXAMPLES = """\
  ovirt-placement groups apply groups.yaml --fail-if 'violated,moves>5'
"""
EXPORT_EXAMPLES = """\
  ovirt-placement groups export --cluster blue > groups.yaml
"""
LOST_EXAMPLES = """\
  ovirt-placement groups lost --forget web1
"""

_MEMBERS = (
    ("vm", "VM", "a VM"),
    ("host", "HOST", "a host"),
    ("vm-label", "LABEL", "a label of VMs"),
    ("host-label", "LABEL", "a label of hosts"),
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser(
        "groups",
        help=summary,
        description=DESCRIPTION,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_listing(
        add_command(
            actions, "list", "affinity groups, their state and members", LIST, listing.run, LIST_EXAMPLES
        )
    )
    _add_adding(add_command(actions, "add", "add an affinity group", ADD, change.add, ADD_EXAMPLES))
    _add_editing(add_command(actions, "edit", "change an affinity group", EDIT, change.edit, EDIT_EXAMPLES))
    removing = add_command(
        actions, "remove", "remove an affinity group", REMOVE, change.remove, REMOVE_EXAMPLES
    )
    removing.add_argument("group", metavar="GROUP", help="by name or id")
    add_foresight(removing)
    _add_connection(removing)
    _add_files(actions)
    losing = add_command(
        actions, "lost", "what VMs lost when they changed their cluster", LOST, lost.run, LOST_EXAMPLES
    )
    losing.add_argument("--forget", metavar="VM", help="forget what this VM lost")
    _add_connection(losing)


def _add_files(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for name, summary, description, run, examples in (
        ("import", "make groups what a file says", IMPORT, apply.import_groups, IMPORT_EXAMPLES),
        ("apply", "have the groups of a file, and no others", APPLY, apply.apply, APPLY_EXAMPLES),
    ):
        parser = add_command(actions, name, summary, description, run, examples)
        parser.add_argument("file", metavar="FILE", type=Path)
        add_foresight(parser)
        _add_connection(parser)
    exporting = add_command(
        actions, "export", "print all groups as YAML", EXPORT, export.run, EXPORT_EXAMPLES
    )
    add_cluster(exporting)
    add_config(exporting)
    add_json(exporting)


def _add_listing(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("--vm", metavar="VM", help="only groups of this VM")
    parser.add_argument("--host", metavar="HOST", help="only groups that list this host, or have a VM on it")
    parser.add_argument("--group", metavar="GROUP", help="only this group")
    parser.add_argument("--violated", action="store_true", help="only violated groups")
    add_question(parser)


def _add_adding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="unique over all clusters")
    parser.add_argument("--cluster", metavar="CLUSTER", required=True, help="by name or id")
    _add_rules(parser)
    for option, metavar, meaning in _MEMBERS:
        parser.add_argument(f"--{option}", metavar=metavar, action="append", default=[], help=meaning)
    add_foresight(parser)
    _add_connection(parser)


def _add_editing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP", help="by name or id")
    parser.add_argument("--name", metavar="NAME", help="a new name")
    _add_rules(parser)
    for verb in ("add", "remove"):
        for option, metavar, meaning in _MEMBERS:
            parser.add_argument(
                f"--{verb}-{option}", metavar=metavar, action="append", default=[], help=f"{verb} {meaning}"
            )
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="change members one by one, which the engine does not check",
    )
    add_foresight(parser)
    _add_connection(parser)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--description", metavar="TEXT")
    parser.add_argument(
        "--priority", type=float, metavar="NUMBER", help="of a soft rule; larger matters more"
    )
    for what, meanings in (
        ("vms", "positive: its VMs run together; negative: apart"),
        ("hosts", "positive: its VMs run on its hosts; negative: off them"),
    ):
        parser.add_argument(f"--{what}-rule", choices=("positive", "negative", "disabled"), help=meanings)
        parser.add_argument(
            f"--{what}-enforcing",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="hard, or soft",
        )


def _add_connection(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_change(parser)
