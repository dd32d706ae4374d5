"""What the administrator asks setup to do, policy by policy."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ovirt_placement.answers.document import find
from ovirt_placement.cli.setup.default_keys import policies_given_for

if TYPE_CHECKING:
    from ovirt_placement.answers.setup.plan import SetupPlan
    from ovirt_placement.answers.setup.previous import Overview, Target, UnitChoice
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.writing.policies import PolicyUser


@dataclass(frozen=True)
class SetupTask:
    """One policy, and the way to plan what is to be done about it, by what the engine has at that moment."""

    policy: str
    plan: Callable[[], SetupPlan]
    #: All clusters of the engine, with their names.
    users: tuple[PolicyUser, ...]


def tasks(connection: EngineConnection, overview: Overview, args: argparse.Namespace) -> Iterator[SetupTask]:
    """Raises `UserError` where it is not clear what is asked for."""
    if args.undo:
        yield from _undoings(connection, args, overview)
        return
    for target in _targets(args, overview):
        yield SetupTask(target.policy, _setting_up(connection, args, target), overview.users)


def left_alone(overview: Overview, args: argparse.Namespace) -> Iterator[str]:
    """What is not done about clusters, although all policies are meant."""
    from ovirt_placement.answers.setup.previous import upgrading

    if args.all_policies and not args.undo:
        for name in upgrading(overview):
            yield f"the cluster {name} is being upgraded and is left alone: run setup again when that is over"


def _targets(args: argparse.Namespace, overview: Overview) -> tuple[Target, ...]:
    from ovirt_placement.answers.setup.previous import DEFAULT, Target, targets

    if args.all_policies:
        return targets(overview, for_users=bool(args.property))
    clusters = (find(word, "cluster", overview.users) for word in dict.fromkeys(args.cluster))
    return (Target(args.policy or DEFAULT, tuple(clusters)),)


def _setting_up(
    connection: EngineConnection, args: argparse.Namespace, target: Target
) -> Callable[[], SetupPlan]:
    from ovirt_placement.answers.setup.plan import plan
    from ovirt_placement.answers.setup.previous import read_overview, read_seen

    choice = _choice(args, target.policy)
    clusters = {cluster.id for cluster in target.clusters}

    def look() -> SetupPlan:
        overview = read_overview(connection)
        users = [user for user in overview.users if user.id in clusters]
        seen = read_seen(connection, overview, target.policy, users, target.origin)
        planned = plan(seen, choice)
        using = (
            ()
            if seen.target is None
            else (user.id for user in overview.users if user.policy == seen.target.head.id)
        )
        return replace(planned, clusters=tuple(dict.fromkeys((*planned.clusters, *using))))

    return look


def _choice(args: argparse.Namespace, policy: str) -> UnitChoice:
    from ovirt_placement.answers.setup.previous import UnitChoice
    from ovirt_placement.answers.setup.units import Admission

    admission = None if args.ha_admission is None else Admission(args.ha_admission)
    return UnitChoice(policy, dict(args.factor), dict(args.property), args.placement_keys, admission)


def _undoings(
    connection: EngineConnection, args: argparse.Namespace, overview: Overview
) -> Iterator[SetupTask]:
    from ovirt_placement.answers.setup.previous import DEFAULT, changed, origin_of

    if not args.all_policies:
        name = args.policy or DEFAULT
        yield SetupTask(name, _undoing(connection, name, frozenset()), overview.users)
        return
    heads = tuple(changed(connection, overview))
    going = frozenset(head.id for head in heads if origin_of(head.description) is not None)
    for head in heads:
        yield SetupTask(head.name, _undoing(connection, head.name, going), overview.users)
    # A policy may have been renamed or removed since its clusters were given keys.
    for name in sorted(policies_given_for(args) - {head.name for head in heads}):
        yield SetupTask(name, _undoing(connection, name, going), overview.users)


def _undoing(connection: EngineConnection, name: str, going: frozenset[str]) -> Callable[[], SetupPlan]:
    from ovirt_placement.answers.setup.plan import SetupPlan
    from ovirt_placement.answers.setup.previous import read_overview
    from ovirt_placement.answers.setup.undo import undo
    from ovirt_placement.engine.writing.policies import read_content

    def look() -> SetupPlan:
        overview = read_overview(connection)
        head = overview.named(name)
        return SetupPlan((), ()) if head is None else undo(overview, read_content(connection, head), going)

    return look
