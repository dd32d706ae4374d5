"""`ovirt-placement setup`: a scheduling policy with our units, and clusters that use it."""

from __future__ import annotations

import argparse

from ovirt_placement import config
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.foresight import add_foresight, stops
from ovirt_placement.cli.question import show_json
from ovirt_service.errors import UserError

DESCRIPTION = """\
Make or update a scheduling policy with our units, and let clusters use it; with --undo, give back what was
before. A second run changes nothing. The user needs to be a SuperUser. See docs/setup.md.
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
        help="all policies that clusters use, or copies of locked ones; with --undo, all that changed",
    )
    parser.add_argument(
        "--undo",
        action="store_true",
        help="take our units out, and give back the engine's units and each cluster's policy",
    )
    parser.add_argument(
        "--cluster",
        metavar="CLUSTER",
        action="append",
        default=[],
        help="a cluster that is to use the policy; repeatable",
    )
    parser.add_argument(
        "--factor",
        metavar="UNIT=N",
        type=_factor,
        action="append",
        default=[],
        help="the factor of a weight of ours and, unless named, of the engine's next to it; repeatable",
    )
    parser.add_argument(
        "--property",
        metavar="KEY=VALUE",
        type=_property,
        action="append",
        default=[],
        help="a unit's parameter, for the policy and the clusters; repeatable",
    )
    parser.add_argument(
        "--placement-keys",
        action="store_true",
        help="also the units of placement keys, and weights for the special keys if none is set",
    )
    parser.add_argument(
        "--ha-admission",
        choices=("hard", "soft"),
        help="also HA admission control: refuse (hard) or avoid (soft) starts that endanger restarts",
    )
    add_foresight(parser)
    add_config(parser)
    add_change(parser)


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.answers.setup.answer import setup, setup_lines
    from ovirt_placement.answers.setup.previous import read_overview
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
        for line in setup_lines(answer, undo=args.undo, named=args.all_policies):
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
