"""`ovirt-placement setup`: a scheduling policy with our units, and clusters that use it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ovirt_placement import config
from ovirt_placement.cli.arguments import add_command, add_config
from ovirt_placement.cli.question import find, show_json
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.answers.setup.choice import Choice, Seen
    from ovirt_placement.answers.setup.plan import Plan
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.writing.policies import PolicyContent, Request

DESCRIPTION = """\
Make a scheduling policy with the units of ovirt-placement, or bring one up to date, and let clusters use it.
A new policy has the filters and weights of the engine's policy none, our filters beside its affinity filters,
our weights in place of its affinity and HA weights, and our balance. What is there already is left alone, so
that a second run changes nothing. The user needs to be a SuperUser. See docs/setup.md.
"""

_NONE = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "setup", "a scheduling policy with our units, in the engine", DESCRIPTION, run
    )
    parser.add_argument(
        "--policy", metavar="NAME", default="ovirt-placement", help="the policy's name (default: %(default)s)"
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
        help="how much a weight counts; repeatable; else what is there, at first that of the engine's weight",
    )
    parser.add_argument(
        "--property",
        metavar="KEY=VALUE",
        type=_property,
        action="append",
        default=[],
        help="a parameter of a unit, for the policy and the clusters named; repeatable",
    )
    parser.add_argument("--placement-keys", action="store_true", help="also the units of placement keys")
    parser.add_argument("--dry-run", action="store_true", help="show the requests and send none")
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.answers.setup.choice import Choice
    from ovirt_placement.answers.setup.plan import plan
    from ovirt_placement.engine.connection.client import connect

    choice = Choice(args.policy, dict(args.factor), dict(args.property), args.placement_keys)
    with connect(config.load(args.config).engine) as connection:
        seen = _read(connection, args.policy, args.cluster)
        found = plan(seen, choice)
        if not args.dry_run and found.requests:
            _carry_out(connection, found.requests, None if seen.target is None else seen.target.head.id)
            _check(connection, args, choice)
    _show(args, found)
    return 0


def _read(connection: EngineConnection, policy: str, clusters: Sequence[str]) -> Seen:
    from ovirt_placement.answers.setup.choice import Seen
    from ovirt_placement.engine.writing import policies

    heads = policies.read_heads(connection)
    known = policies.read_users(connection)

    def content(fits: Callable[[str, str], bool]) -> PolicyContent | None:
        head = next((head for head in heads if fits(head.id, head.name)), None)
        return None if head is None else policies.read_content(connection, head)

    base = content(lambda policy_id, _: policy_id == _NONE) or content(lambda _, name: name == "none")
    if base is None:
        raise UserError("the engine has no policy none to begin with: is it an oVirt engine of 4.0 or later?")
    return Seen(
        units=policies.read_units(connection),
        base=base,
        target=content(lambda _, name: name == policy),
        clusters=tuple(find(word, "cluster", known) for word in dict.fromkeys(clusters)),
    )


def _carry_out(connection: EngineConnection, requests: Sequence[Request], policy_id: str | None) -> None:
    from ovirt_placement.engine.writing import policies

    for done, request in enumerate(requests):
        try:
            policy_id = policies.send(connection, request, policy_id)
        except UserError as error:
            raise UserError(
                f"{done} of {len(requests)} requests are done; this one failed: {request.what}: {error}."
                " Mend that and run setup again: it goes on where it stopped"
            ) from None


def _check(connection: EngineConnection, args: argparse.Namespace, choice: Choice) -> None:
    """Look whether the engine kept all; for a policy that it does not find it silently takes another."""
    from ovirt_placement.answers.setup.plan import plan

    left = plan(_read(connection, args.policy, args.cluster), choice).requests
    if left:
        raise UserError(
            f"the engine accepted all requests, but not all took effect: {'; '.join(r.what for r in left)}."
            " Does somebody else change the policy? Run setup again"
        )


def _show(args: argparse.Namespace, found: Plan) -> None:
    if args.json:
        requests = [
            {"what": one.what, "method": one.method, "path": one.path, "body": one.body.decode()}
            for one in found.requests
        ]
        show_json({"sent": not args.dry_run, "requests": requests, "notes": found.notes})
        return
    for request in found.requests:
        print(request.what)
        if args.dry_run:
            print(f"    {request.method} {request.path}")
            if request.body:
                print(f"    {request.body.decode()}")
    for note in found.notes:
        print(f"note: {note}")
    if not found.requests:
        print(f"The policy {args.policy} is set up; nothing to change.")
    elif args.dry_run:
        print("Nothing was sent (--dry-run).")


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
