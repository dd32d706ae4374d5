"""`ovirt-placement keys`: which placement keys are set, what is wrong with them, and how they place a VM."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ovirt_placement.commands import keys_explain, keys_show
from ovirt_placement.commands.question import add_question, read_state, show, show_json
from ovirt_placement.explain_keys import key_place, mistake_place, mistake_sentence, written
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.rules.placement_keys.keys import kind
from ovirt_placement.rules.placement_keys.mistakes import Mistake, find_mistakes

DESCRIPTION = "Look at placement keys, which draw VMs to some hosts and keep them off others."

LIST = """\
List every placement key with who set it (system: the operator; be: a billing entity; customer) and on what.
"""
CHECK = """\
List the mistakes: keys that placements ignore, properties of VMs that are no keys, hosts that lack keys of
their cluster. No mistake ever stops a VM from starting. The exit status is 1 if there is any.
"""
SHOW = """\
Show the compiled keys of a VM, with the level that each comes from and what it hides there, or of a host: its
own, those computed for it, and those that the VMs on it brought.
"""
EXPLAIN = """\
Take a VM through all steps of its placement and say of each host of its cluster how near its keys come, its
score, its round, what the customer's keys make of it, and which host is chosen.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "keys", help="placement keys, and how they place a VM", description=DESCRIPTION
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_action(actions, "list", "the keys that are set", LIST, _list)
    _add_action(actions, "check", "keys that are ignored, and why", CHECK, _check)
    showing = _add_action(actions, "show", "the compiled keys of a VM or host", SHOW, keys_show.run)
    showing.add_argument("item", metavar="VM|HOST", help="its name or id")
    explaining = _add_action(actions, "explain", "how keys place a VM", EXPLAIN, keys_explain.run)
    explaining.add_argument("vm", metavar="VM", help="its name or id")
    explaining.add_argument(
        "--stay",
        action="store_true",
        help="of a running VM, also judge the host that it runs on, as if it were not there",
    )


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    description: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = actions.add_parser(
        name,
        help=summary,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_question(parser)
    parser.set_defaults(run=run)
    return parser


def _list(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    if args.json:
        show_json([{**_fields(key), "kind": kind(key)} for key in snapshot.placement_keys])
    else:
        rows = [
            (key_place(key, snapshot), key.key_class, key.name, written(key.value), _weight(key), kind(key))
            for key in snapshot.placement_keys
        ]
        show(rows, ("on", "class", "name", "value", "weight", "kind"))
    return 0


def _check(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    mistakes = find_mistakes(snapshot)
    if args.json:
        show_json([_described(mistake, snapshot) for mistake in mistakes])
    else:
        rows = [(mistake_place(one, snapshot), mistake_sentence(one)) for one in mistakes]
        show(rows, ("where", "what is wrong")) if rows else print("No mistakes.")
    return int(bool(mistakes))


def _described(mistake: Mistake, snapshot: Snapshot) -> dict[str, object]:
    return {
        "where": mistake_place(mistake, snapshot),
        "codes": mistake.codes,
        "sentence": mistake_sentence(mistake),
    }


def _fields(key: PlacementKey) -> dict[str, object]:
    return {
        "level": key.level,
        "resource": key.resource,
        "class": key.key_class,
        "name": key.name,
        "value": key.value,
        "weight": key.weight,
        "sticky": key.sticky,
    }


def _weight(key: PlacementKey) -> str:
    return "" if key.weight is None else f"{key.weight:g}"
