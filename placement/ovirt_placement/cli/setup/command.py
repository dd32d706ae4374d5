"""`ovirt-placement setup`: a scheduling policy with our units, and clusters that use it."""

from __future__ import annotations

import argparse

from ovirt_placement import config
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.foresight import add_foresight, stops
from ovirt_placement.cli.question import show_json
from ovirt_service.errors import UserError

DESCRIPTION = """\
Make a scheduling policy with the units of ovirt-placement, or bring one up to date, and let clusters use it.
A new policy has the filters and weights of the engine's policy none, our filters and weights next to its own
for affinity and HA reservation, and our balance. What is there already is left alone, so that a second run
changes nothing. A policy that an earlier release made, with our weights in place of the engine's, gets the
engine's again. With --undo, take our units out again and give back what was before.
The user needs to be a SuperUser. See docs/setup.md.
"""


EXAMPLES = """\
  ovirt-placement setup --cluster blue --dry-run
  ovirt-placement setup --all-policies --undo
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "setup", summary, DESCRIPTION, run, EXAMPLES)
    parser.add_argument("--policy", metavar="NAME", help="the policy's name (default: ovirt-placement)")
    parser.add_argument(
        "--all-policies",
        action="store_true",
        help="all policies that clusters use; of the engine's own, which are locked, a copy that they use"
        " from then on; with --undo, all that setup changed",
    )
    parser.add_argument(
        "--undo",
        action="store_true",
        help="take our units out, and give back what was before: the engine's weights with their factors, and"
        " the policy that each cluster had",
    )
    parser.add_argument(
        "--cluster",
        metavar="CLUSTER",
        action="append",
        default=[],
        help="a cluster that is to use it, by name or id; repeatable",
    )
    parser.add_argument(
        "--factor",
        metavar="UNIT=N",
        type=_factor,
        action="append",
        default=[],
        help="how much a weight counts; repeatable; that of a weight of ours is also that of the engine's"
        " next to it, unless you name that as well; else what is there, at first that of the engine's weight",
    )
    parser.add_argument(
        "--property",
        metavar="KEY=VALUE",
        type=_property,
        action="append",
        default=[],
        help="a parameter of a unit, for the policy and the clusters named; repeatable",
    )
    parser.add_argument(
        "--placement-keys",
        action="store_true",
        help="also the units of placement keys, and for the clusters of the policy the special keys #RAM"
        " (weight 40), #CPU (30) and #LOAD (30), where none of them is set",
    )
    parser.add_argument(
        "--ha-admission",
        choices=("hard", "soft"),
        help="also the unit that refuses starts which take the room of an HA reservation (hard), or that"
        " makes them the last choice (soft)",
    )
    add_foresight(parser)
    add_config(parser)
    add_change(parser)


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.answers.setup.answer import lines, setup
    from ovirt_placement.answers.setup.reading import read_overview
    from ovirt_placement.cli.setup.carrying_out import carry_out
    from ovirt_placement.cli.setup.foreseen import foreseen
    from ovirt_placement.cli.setup.tasks import left_alone, tasks
    from ovirt_placement.engine.connection.client import connect

    with connect(config.load(args.config).engine) as connection:
        overview = read_overview(connection)
        notes = tuple(left_alone(overview, args))
        asked = tuple(tasks(connection, overview, args))
        if (status := stops(args, lambda: foreseen(args, asked))) is not None:
            return status
        outcomes = [carry_out(connection, task, args) for task in asked]
    answer = setup(outcomes, notes, dry_run=args.dry_run)
    if args.json:
        show_json(answer)
    else:
        for line in lines(answer, undo=args.undo, named=args.all_policies):
            print(line)
    if failed := [one for one in answer.policies if one.error is not None]:
        reported = "; ".join(f"{one.policy}: {one.error}" for one in failed)
        raise UserError(f"{len(failed)} of {len(answer.policies)} policies stay as they are: {reported}")
    return 0


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that say nothing together."""
    given = {
        "--policy": args.policy is not None,
        "--cluster": bool(args.cluster),
        "--factor": bool(args.factor),
        "--property": bool(args.property),
        "--placement-keys": args.placement_keys,
        "--ha-admission": args.ha_admission is not None,
        "--what-if": args.what_if,
        "--fail-if": bool(args.fail_if),
    }
    refused = {
        "--all-policies": (("--policy", "--cluster"), "all policies that clusters use are meant"),
        "--undo": (
            (
                "--cluster",
                "--factor",
                "--property",
                "--placement-keys",
                "--ha-admission",
                "--what-if",
                "--fail-if",
            ),
            "it gives everything back that setup took or gave",
        ),
    }
    for option, asked in (("--all-policies", args.all_policies), ("--undo", args.undo)):
        names, because = refused[option]
        for name in names:
            if asked and given[name]:
                raise UserError(f"{option} goes without {name}: {because}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f'"{text}": write NAME=VALUE')
    return name, value


def _property(text: str) -> tuple[str, str]:
    return _pair(text)


def _factor(text: str) -> tuple[str, int]:
    name, value = _pair(text)
    if not value.isdecimal() or int(value) > 2**31 - 1:
        raise argparse.ArgumentTypeError(f'"{text}": a factor is a whole number, at least 0')
    return name, int(value)
