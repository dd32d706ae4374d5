"""`ovirt-placement setup`: a scheduling policy with our units, and clusters that use it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ovirt_placement import config
from ovirt_placement.answers.document import find
from ovirt_placement.answers.setup import ADMISSION_UNITS, SetupPlan
from ovirt_placement.answers.setup.answer import (
    SetupOutcome,
    changes,
    given,
    notes,
    policy_change,
    policy_state,
    setup,
    setup_lines,
    taken,
)
from ovirt_placement.answers.setup.plan import UnitChoice, plan, read_seen
from ovirt_placement.answers.setup.previous import (
    DEFAULT,
    Overview,
    Target,
    changed,
    origin_of,
    read_overview,
    read_policy,
    targets,
    undo,
    upgrading,
)
from ovirt_placement.cli.changes import (
    add_writing,
    connected,
    login_name,
    opened,
    recorded,
    show_change,
    stops,
    stored,
)
from ovirt_placement.cli.questions import PATIENCE_SECONDS, add_command
from ovirt_placement.engine import policies
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError
from ovirt_placement.engine.policies import Policy, PolicyRequest
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.store.keys import DefaultKeyChange, DefaultKeys, DefaultKeyStore
from ovirt_placement.store.user_actions import UserActionKind
from ovirt_service.errors import UserError
from ovirt_service.screen import say

if TYPE_CHECKING:
    from ovirt_placement.forecast.changes import Change


# -- The special keys that setup gives clusters, and that its undoing takes back: read, planned and written.
_NOTHING = DefaultKeyChange()


def planned_keys(
    args: argparse.Namespace, policy: str, plan: SetupPlan
) -> tuple[DefaultKeyChange, DefaultKeys]:
    """What is to become of special keys, by what stands; and that.

    Raises `UserError` if keys are to be given, and the store does not answer. That does not prevent undoing
    the rest: a line on standard error says that they stay.
    """
    if not args.undo and not args.placement_keys:
        return _NOTHING, DefaultKeys()
    try:
        there = _default_keys(args)
    except UserError as error:
        if not args.undo:
            raise
        say(f"warning: the placement keys that setup gave clusters stay until it is undone again: {error}")
        return _NOTHING, DefaultKeys()
    return _decided_keys(args, policy, plan, there), there


def write_keys(args: argparse.Namespace, policy: str, plan: SetupPlan) -> None:
    """Write what is decided on what stands now."""
    with opened(DefaultKeyStore, args) as store:
        store.change(lambda there: _decided_keys(args, policy, plan, there), set_by=login_name())


def _default_keys(args: argparse.Namespace) -> DefaultKeys:
    return stored(DefaultKeyStore, args, DefaultKeyStore.read, DefaultKeys())


def _decided_keys(
    args: argparse.Namespace, policy: str, plan: SetupPlan, there: DefaultKeys
) -> DefaultKeyChange:
    return taken(policy, there) if args.undo else given(policy, plan.clusters, there)


# -- What the administrator asks setup to do, policy by policy.
class SetupTask(NamedTuple):
    """One policy, and the way to plan what is to be done about it, by what the engine has at that moment."""

    policy: str
    plan: Callable[[Overview], SetupPlan]


def tasks(connection: EngineConnection, overview: Overview, args: argparse.Namespace) -> Iterator[SetupTask]:
    """Raises `UserError` where it is not clear what is asked for."""
    if args.undo:
        yield from _undoings(connection, args, overview)
        return
    for target in _targets(args, overview):
        yield _setting_up(connection, args, target)


def left_alone(overview: Overview, args: argparse.Namespace) -> Iterator[str]:
    """What is not done about clusters, although all policies are meant."""
    if args.all_policies and not args.undo:
        for name in upgrading(overview):
            yield f"the cluster {name} is being upgraded and is left alone: run setup again when that is over"


def _targets(args: argparse.Namespace, overview: Overview) -> tuple[Target, ...]:
    if args.all_policies:
        return targets(overview, for_users=bool(args.property))
    clusters = (find(word, "cluster", overview.users) for word in dict.fromkeys(args.cluster))
    return (Target(args.policy or DEFAULT, tuple(clusters)),)


def _setting_up(connection: EngineConnection, args: argparse.Namespace, target: Target) -> SetupTask:
    factors, properties = dict(args.factor), dict(args.property)
    choice = UnitChoice(target.policy, factors, properties, args.placement_keys, args.ha_admission)
    clusters = {cluster.id for cluster in target.clusters}

    def look(overview: Overview) -> SetupPlan:
        users = [user for user in overview.users if user.id in clusters]
        return plan(read_seen(connection, overview, target.policy, users, target.origin), choice)

    return SetupTask(target.policy, look)


def _undoings(
    connection: EngineConnection, args: argparse.Namespace, overview: Overview
) -> Iterator[SetupTask]:
    if not args.all_policies:
        yield _undoing(connection, args.policy or DEFAULT, frozenset())
        return
    heads = tuple(changed(connection, overview))
    going = frozenset(head.id for head in heads if origin_of(head.description) is not None)
    # A policy may have been renamed or removed since its clusters were given keys.
    given_for: set[str] = set()
    with suppress(UserError):  # the store does not answer
        given_for = {one.policy for one in _default_keys(args).given}
    names = [head.name for head in heads]
    for name in (*names, *sorted(given_for.difference(names))):
        yield _undoing(connection, name, going)


def _undoing(connection: EngineConnection, name: str, going: frozenset[str]) -> SetupTask:
    def look(overview: Overview) -> SetupPlan:
        policy = read_policy(connection, overview, name)
        return SetupPlan((), ()) if policy is None else undo(overview, policy, going)

    return SetupTask(name, look)


def _planned(task: SetupTask, overview: Overview) -> SetupPlan | UserError:
    """What is to be done about a policy, or what speaks against it: that may be so of one of several."""
    try:
        return task.plan(overview)
    except (EngineAway, EngineSetupError):
        raise
    except UserError as error:
        return error


# -- The change that setting policies up is, for a preview of it.
def intended(
    args: argparse.Namespace, overview: Overview, tasks: Sequence[SetupTask]
) -> tuple[Snapshot, Change]:
    """Our units in force in their clusters; with what speaks against single policies, and their notes."""
    from ovirt_placement.forecast.changes import changed_policies

    policies: dict[str, Policy] = {}
    keys: list[PlacementKey] = []
    conflicts: list[str] = []
    for task in tasks:
        plan = _planned(task, overview)
        if isinstance(plan, UserError):
            conflicts.append(f"policy {task.policy}: {plan}")
            continue
        conflicts += (f"policy {task.policy}: {note}" for note in plan.notes)
        if plan.policy is not None:
            policies |= dict.fromkeys(plan.clusters, plan.policy)
            keys += (one.key for one in planned_keys(args, task.policy, plan)[0].give)
    before = inventory.snapshot(config=config.load(args.config), max_age=0.0, deadline=PATIENCE_SECONDS)
    return before, changed_policies(before, policies, keys, conflicts)


# -- Sends what is planned for a policy, and looks whether the engine kept it.
def carry_out(connection: EngineConnection, task: SetupTask, args: argparse.Namespace) -> SetupOutcome:
    """Raises `UserError` for what goes wrong, but for what speaks against one policy of several."""
    overview = read_overview(connection)
    plan = _planned(task, overview)
    if isinstance(plan, UserError):
        if not args.all_policies:
            raise plan
        return SetupOutcome(policy_change(task.policy, SetupPlan((), ()), error=str(plan)))
    keys, there = planned_keys(args, task.policy, plan)
    of_clusters = tuple(changes(keys, overview.users))
    change = policy_change(task.policy, plan, of_clusters, tuple(notes(keys, there, overview.users)))
    if not plan.requests and keys == _NOTHING:
        return SetupOutcome(change)
    before = policy_state(overview, read_policy(connection, overview, task.policy))
    if args.dry_run:
        return SetupOutcome(change, before, policy_state(overview, plan.after, plan.users))
    given = tuple(one.sentence for one in of_clusters)
    overview = _send_and_write(connection, task, args, plan, given, keys=keys != _NOTHING)
    after = policy_state(overview, read_policy(connection, overview, task.policy))
    return SetupOutcome(change, before, after)


def _send_and_write(
    connection: EngineConnection,
    task: SetupTask,
    args: argparse.Namespace,
    plan: SetupPlan,
    given: tuple[str, ...],
    *,
    keys: bool,
) -> Overview:
    """Keys come last and go first: a cluster has them only while its policy places by them."""
    kind = UserActionKind.SETUP_UNDO if args.undo else UserActionKind.SETUP
    asked = tuple(request.what for request in plan.requests)
    with recorded(args, kind, task.policy, (*given, *asked) if args.undo else (*asked, *given)):
        if args.undo and keys:
            write_keys(args, task.policy, plan)
        _send(connection, plan.requests)
        overview = read_overview(connection)
        _check(task.plan(overview))
        if not args.undo and keys:
            write_keys(args, task.policy, plan)
    return overview


def _send(connection: EngineConnection, requests: Sequence[PolicyRequest]) -> None:
    policy_id: str | None = None
    for done, request in enumerate(requests):
        try:
            policy_id = policies.send(connection, request, policy_id)
        except UserError as error:
            raise UserError(
                f"{done} of {len(requests)} requests are done; this one failed: {request.what}: {error}."
                " Repair that and run setup again: it goes on where it stopped"
            ) from None


def _check(left: SetupPlan) -> None:
    """Look whether the engine kept all; for a policy that it does not find it silently takes another."""
    if left.requests:
        what = "; ".join(request.what for request in left.requests)
        raise UserError(
            f"the engine accepted all requests, but not all took effect: {what}."
            " Does another user change the policy? Run setup again"
        )


# -- `ovirt-placement setup`: a scheduling policy with our units, and clusters that use it.
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
        type=_pair,
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
        choices=tuple(ADMISSION_UNITS),
        help="also HA admission control: refuse (hard) or avoid (soft) starts that endanger restarts",
    )
    add_writing(parser)


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    with connected(args) as connection:
        overview = read_overview(connection)
        notes = tuple(left_alone(overview, args))
        asked = tuple(tasks(connection, overview, args))
        if (status := stops(args, lambda: intended(args, overview, asked))) is not None:
            return status
        outcomes = [carry_out(connection, task, args) for task in asked]
    answer = setup(outcomes, notes, dry_run=args.dry_run)
    show_change(args, answer, setup_lines(answer, undo=args.undo, named=args.all_policies))
    if failed := [one for one in answer.policies if one.error is not None]:
        reported = "; ".join(f"{one.policy}: {one.error}" for one in failed)
        raise UserError(f"{len(failed)} of {len(answer.policies)} policies stay as they are: {reported}")
    return 0


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that say nothing together."""
    for option, names, because in (
        ("--all-policies", ("--policy", "--cluster"), "all policies that clusters use are meant"),
        ("--undo", _NOT_UNDOING, "it gives everything back that setup took or gave"),
    ):
        for name in names:
            if _given(args, option) and _given(args, name):
                raise UserError(f"{option} goes without {name}: {because}")


_NOT_UNDOING = (
    *("--cluster", "--factor", "--property", "--placement-keys", "--ha-admission", "--what-if", "--fail-if"),
)


def _given(args: argparse.Namespace, option: str) -> bool:
    return getattr(args, option[2:].replace("-", "_")) not in (None, False, [], ())


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f'"{text}": write NAME=VALUE')
    return name, value


def _factor(text: str) -> tuple[str, int]:
    name, value = _pair(text)
    if not value.isdecimal() or int(value) > 2**31 - 1:
        raise argparse.ArgumentTypeError(f'"{text}": a factor is a whole number, at least 0')
    return name, int(value)
