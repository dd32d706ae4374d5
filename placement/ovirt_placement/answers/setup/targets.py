"""Which policies setup works on when it is asked for all: those that clusters use, or that it has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.former import NOTHING, origin_of, remembered
from ovirt_placement.answers.setup.returning import BASE, Overview, in_order
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing.policies import PolicyHead
from ovirt_placement.engine.writing import policies
from ovirt_placement.engine.writing.policies import PolicyUser
from ovirt_service.errors import UserError

#: The policy that setup makes if it is asked for no other. A copy of another than `none` adds its name.
DEFAULT = "ovirt-placement"

#: A cluster has one of these while it is upgraded, and gets back what it had before: not ours to change.
_UPGRADING = frozenset({"7677771e-5eab-422e-83fa-dc04080d21b7", "8d5d7bec-68de-4a67-b53e-0ac54686d586"})


@dataclass(frozen=True)
class Target:
    """A policy that is to have our units, and the clusters that are to use it from now on."""

    policy: str
    clusters: tuple[PolicyUser, ...] = ()
    #: The engine's policy that it is made like, if it must be made.
    origin: str = BASE


def targets(overview: Overview, *, for_users: bool) -> tuple[Target, ...]:
    """Every policy that some cluster uses; in place of one that is locked, a copy of it.

    With `for_users`, clusters are named that use theirs already: they are to have its parameters. Raises
    `UserError` if the name of a copy is taken.
    """
    users = _users(overview)
    named = {
        head.name: Target(head.name, users[head.id] if for_users else ())
        for head in overview.heads
        if head.id in users and not head.locked
    }
    for head in overview.heads:
        if head.id in users and head.locked:
            copy = _copy(overview, head)
            clusters = (*named.get(copy, Target(copy)).clusters, *users[head.id])
            named[copy] = Target(copy, clusters, head.name)
    return tuple(named.values())


def upgrading(overview: Overview) -> tuple[str, ...]:
    """The names of clusters that are left alone."""
    return tuple(user.name for user in overview.users if user.policy in _UPGRADING)


def changed(connection: EngineConnection, overview: Overview) -> Iterator[PolicyHead]:
    """The policies in which setup has left a trace, those first that refer to others."""
    for head in in_order(tuple(head for head in overview.heads if not head.locked)):
        if (
            origin_of(head.description) is not None
            or remembered(head.description) != NOTHING
            or ours.attached(overview.units, policies.read_content(connection, head).units)
        ):
            yield head


def _users(overview: Overview) -> dict[str, tuple[PolicyUser, ...]]:
    """Clusters by the id of the policy that they use."""
    found: dict[str, tuple[PolicyUser, ...]] = {}
    for user in overview.users:
        if user.policy is not None and user.policy not in _UPGRADING:
            found[user.policy] = (*found.get(user.policy, ()), user)
    return found


def _copy(overview: Overview, head: PolicyHead) -> str:
    """The name of the copy of a locked policy: one that is there, or a new one's."""
    usual = DEFAULT if head.name == BASE else f"{DEFAULT}-{head.name}"
    copies = [one.name for one in overview.heads if origin_of(one.description) == head.name]
    if copies:
        return usual if usual in copies else copies[0]
    if overview.named(usual) is not None:
        raise UserError(
            f"setup would name its copy of {head.name} {usual}, but another policy has that name: rename it"
        )
    return usual
