"""Records who asks the engine for a change, before it is asked and once it has answered."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ovirt_placement import config
from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.store import opened
from ovirt_service.errors import UserError
from ovirt_service.screen import say

if TYPE_CHECKING:
    from ovirt_placement.store.user_actions import Act, UserActionKind


@contextmanager
def recorded(
    args: argparse.Namespace,
    kind: UserActionKind,
    subject: str,
    details: tuple[str, ...] = (),
    *,
    cluster: str = "",
    cluster_name: str = "",
) -> Iterator[None]:
    """Record an act that the block is, as begun, and then as done or failed.

    A store that is away, or that this machine has none of, keeps nobody from the act: a line on standard
    error says that it is not recorded.
    """
    # SQLAlchemy takes long to load: not for `--help`.
    from ovirt_placement.store.user_actions import Act

    act = Act(
        kind=kind,
        login=login_name(),
        engine_user=_engine_user(args),
        cluster=cluster,
        cluster_name=cluster_name,
        subject=subject,
        details=details,
    )
    number = _begin(args, act)
    try:
        yield
    except BaseException as error:  # Ctrl-C as well: what was asked by then stays asked
        _end(args, number, str(error) or type(error).__name__)
        raise
    _end(args, number, None)


def _engine_user(args: argparse.Namespace) -> str | None:
    """The user of the configuration; of a token it is not known whose it is."""
    from ovirt_placement.engine.connection.user_tokens import given_token

    return None if given_token() else config.load(args.config).engine.username


def _begin(args: argparse.Namespace, act: Act) -> int | None:
    from ovirt_placement.store.user_actions import UserActionStore

    try:
        with opened(UserActionStore, args) as store:
            return store.begin(act)
    except UserError as error:
        say(f"warning: it is not recorded who does this: {error}")
        return None


def _end(args: argparse.Namespace, number: int | None, error: str | None) -> None:
    from ovirt_placement.store.user_actions import UserActionStore

    if number is None:
        return
    try:
        with opened(UserActionStore, args) as store:
            store.end(number, error)
    except UserError as away:
        say(f"warning: it is not recorded how this ended: {away}")
