"""The special keys that setup gives clusters, and that its undoing takes back: read, planned and written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.store import opened, stored
from ovirt_service.errors import UserError
from ovirt_service.screen import say

if TYPE_CHECKING:
    from ovirt_placement.answers.setup.default_keys import ClusterKeys
    from ovirt_placement.answers.setup.plan import SetupPlan
    from ovirt_placement.engine.writing.policies import PolicyUser
    from ovirt_placement.store.default_keys import DefaultKeyChange, DefaultKeys


@dataclass(frozen=True)
class KeyPlan:
    """What is to become of special keys; `change` is empty where nothing is."""

    change: DefaultKeyChange
    clusters: tuple[ClusterKeys, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any((self.change.give, self.change.renew, self.change.take, self.change.leave))


def no_keys() -> KeyPlan:
    from ovirt_placement.store.default_keys import DefaultKeyChange

    return KeyPlan(DefaultKeyChange())


def planned_keys(
    args: argparse.Namespace, policy: str, users: Sequence[PolicyUser], plan: SetupPlan
) -> KeyPlan:
    """Plan by what stands; `users` are all clusters of the engine.

    Raises `UserError` if keys are to be given, and the store does not answer. That keeps nobody from undoing
    the rest: a line on standard error says that they stay.
    """
    from ovirt_placement.answers.setup.default_keys import changes, notes

    if not args.undo and not args.placement_keys:
        return no_keys()
    try:
        there = _read(args)
    except UserError as error:
        if not args.undo:
            raise
        say(f"warning: the placement keys that setup gave clusters stay until it is undone again: {error}")
        return no_keys()
    change = _decided(args, policy, plan, there)
    return KeyPlan(change, tuple(changes(change, users)), tuple(notes(change, there, users)))


def write_keys(args: argparse.Namespace, policy: str, plan: SetupPlan) -> None:
    """Write what is decided on what stands now."""
    from ovirt_placement.store.default_keys import DefaultKeyStore

    with opened(DefaultKeyStore, args) as store:
        store.change(lambda there: _decided(args, policy, plan, there), set_by=login_name())


def policies_given_for(args: argparse.Namespace) -> frozenset[str]:
    """The names of the policies for which clusters were given keys; none where the store does not answer."""
    try:
        return frozenset(one.policy for one in _read(args).given)
    except UserError:
        return frozenset()


def _read(args: argparse.Namespace) -> DefaultKeys:
    from ovirt_placement.store.default_keys import DefaultKeys, DefaultKeyStore

    return stored(DefaultKeyStore, args, DefaultKeyStore.read, DefaultKeys())


def _decided(args: argparse.Namespace, policy: str, plan: SetupPlan, there: DefaultKeys) -> DefaultKeyChange:
    from ovirt_placement.answers.setup.default_keys import given, taken

    return taken(policy, there) if args.undo else given(policy, plan.clusters, there)
