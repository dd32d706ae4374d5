"""`ovirt-placement keys`: sets placement keys, and shows what is wrong with them and how they place a VM."""

from __future__ import annotations

import argparse
from pathlib import Path

from ovirt_placement.answers.keys.change import SETTERS
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.foresight import add_foresight
from ovirt_placement.cli.keys import change, check, explain, listing, prune, show
from ovirt_placement.cli.keys.state import add_key_state, read_keys
from ovirt_placement.cli.question import show_json
from ovirt_placement.model import key_file
from ovirt_placement.model.placement_keys import SETTABLE

DESCRIPTION = """\
Set placement keys, which draw VMs to some hosts and keep them off others, and look at what they do. See
docs/placement-keys.md.
"""
LIST = """\
List placement keys: the class (system: the operator's; be: a billing entity's; customer), what each is set
on, who set it and when.
"""
DEFINE = """\
Set or replace a key on every host of a cluster: a host key exists on all hosts of a cluster or on none.
"""
SET = """\
Set or replace a key on one object. On a host it has no weight, and must be defined for the cluster first.
"""
UNSET = """\
Remove a key from one object, or a host key from all hosts of a cluster.
"""
EXPORT = """\
Print all keys as YAML (with --json as JSON), as `keys import` reads it.
"""
IMPORT = """\
Set the keys of a YAML file: all or none. Other keys stay, unless --replace is given.
"""
PRUNE = """\
Remove the keys of clusters, hosts, VMs, data centers, networks, vNIC profiles, disks and NICs that the engine
no longer has, and the sticky copies of VMs that are gone (otherwise removed after a week).
"""
CHECK = """\
List keys that are ignored, and why: mistakes, hosts that lack a key of their cluster, objects that are gone.
The exit status is 1 if there is any.
"""
SHOW = """\
Show the compiled keys of a VM, with the level of each and what it hides, or all keys of a host.
"""
EXPLAIN = """\
Show how keys place a VM, host by host: nearness, score, round, customer's score, and the chosen host.
"""


LIST_EXAMPLES = """\
  ovirt-placement keys list --on cluster blue
"""
DEFINE_EXAMPLES = """\
  ovirt-placement keys define rack --cluster blue --values node1=1 node2=2 --default 0
"""
SET_EXAMPLES = """\
  ovirt-placement keys set rack 1 5 --on vm web1
  ovirt-placement keys set rack 2 --on host node1
"""
UNSET_EXAMPLES = """\
  ovirt-placement keys unset rack --on vm web1
  ovirt-placement keys unset rack --cluster blue
"""
EXPORT_EXAMPLES = """\
  ovirt-placement keys export > keys.yaml
"""
IMPORT_EXAMPLES = """\
  ovirt-placement keys import keys.yaml --replace
"""
PRUNE_EXAMPLES = """\
  ovirt-placement keys prune --dry-run
"""
CHECK_EXAMPLES = """\
  ovirt-placement keys check --keys keys.yaml      # before they are imported
"""
SHOW_EXAMPLES = """\
  ovirt-placement keys show web1
"""
EXPLAIN_EXAMPLES = """\
  ovirt-placement keys explain web1
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("keys", help=summary, description=DESCRIPTION)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_questions(actions)
    _add_define(
        add_command(
            actions, "define", "give every host of a cluster a key", DEFINE, change.define, DEFINE_EXAMPLES
        )
    )
    _add_set(add_command(actions, "set", "set a key", SET, change.set_key, SET_EXAMPLES))
    _add_unset(add_command(actions, "unset", "remove a key", UNSET, change.unset, UNSET_EXAMPLES))
    _add_import(
        add_command(
            actions, "import", "set the keys of a YAML file", IMPORT, change.import_keys, IMPORT_EXAMPLES
        )
    )
    pruning = add_command(
        actions,
        "prune",
        "remove keys of objects that are gone from the engine",
        PRUNE,
        prune.run,
        PRUNE_EXAMPLES,
    )
    _add_connection(pruning)


def _add_questions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listed = add_command(actions, "list", "the keys that are set", LIST, listing.run, LIST_EXAMPLES)
    listing.add_arguments(listed)
    checking = add_command(
        actions, "check", "keys that are ignored, and why", CHECK, check.run, CHECK_EXAMPLES
    )
    showing = add_command(actions, "show", "the compiled keys of a VM or host", SHOW, show.run, SHOW_EXAMPLES)
    showing.add_argument("item", metavar="VM|HOST", help="its name or id")
    explaining = add_command(
        actions, "explain", "how keys place a VM", EXPLAIN, explain.run, EXPLAIN_EXAMPLES
    )
    explaining.add_argument("vm", metavar="VM", help="its name or id")
    exporting = add_command(actions, "export", "print all keys as YAML", EXPORT, _export, EXPORT_EXAMPLES)
    for parser in (listed, checking, showing, explaining, exporting):
        add_key_state(parser)


def _add_define(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("--cluster", metavar="CLUSTER", required=True, help="by name or id")
    parser.add_argument("--values", metavar="HOST=VALUE", nargs="+", default=[], help="the values of hosts")
    parser.add_argument("--default", metavar="VALUE", help="the value of all other hosts")
    parser.add_argument(
        "--sticky",
        metavar="WEIGHT",
        help="VMs that start on a host copy its value, with this weight",
    )
    add_foresight(parser)
    _add_connection(parser)


def _add_set(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("value", metavar="VALUE", help="a number")
    parser.add_argument("weight", metavar="WEIGHT", nargs="?", help="a number; not for host keys")
    _add_on(parser, required=True)
    _add_setter(parser, default="operator")
    add_foresight(parser)
    _add_connection(parser)


def _add_unset(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    _add_on(where)
    where.add_argument("--cluster", metavar="CLUSTER", help="from all hosts of this cluster")
    _add_setter(parser, default="operator")
    add_foresight(parser)
    _add_connection(parser)


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.add_argument(
        "--replace",
        action="store_true",
        help="remove all keys that the file lacks (with --as, only of that class)",
    )
    _add_setter(parser, default=None)
    add_foresight(parser)
    _add_connection(parser)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the key; one that begins with - goes last, after --")


def _add_on(parser: argparse._ActionsContainer, *, required: bool = False) -> None:
    parser.add_argument(
        "--on",
        nargs=2,
        metavar=("LEVEL", "RESOURCE"),
        required=required,
        help=f"a level ({', '.join(SETTABLE)}) and the name or id of an object",
    )


def _add_setter(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    parser.add_argument(
        "--as",
        dest="setter",
        choices=SETTERS,
        default=default,
        help=f"whose key it is; else {default or 'the classes in the file say'}",
    )


def _add_connection(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_change(parser)


def _export(args: argparse.Namespace) -> int:
    snapshot = read_keys(args).snapshot
    if args.json:
        show_json(key_file.described(snapshot.placement_keys, snapshot))
    else:
        print(key_file.dumps(snapshot.placement_keys, snapshot), end="")
    return 0
