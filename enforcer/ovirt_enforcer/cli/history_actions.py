"""What people did, as `ovirt-enforcer history` shows it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ovirt_enforcer.cli.documents import UserActionDone
from ovirt_enforcer.history.selecting import user_actions_about
from ovirt_enforcer.history.text import moment
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.store import stored
from ovirt_placement.store.history import PlanRecord
from ovirt_placement.store.user_actions import UserAction, UserActionStore

#: How far back, where nobody says.
_SECONDS: Final = 7 * 24 * 3600.0
#: Below the days stand this many, the last ones.
_LATEST: Final = 10


def show(args: argparse.Namespace) -> int:
    """Print all that people did, or as data."""
    found = about(args, args.since or _SECONDS, (), "")
    if args.json:
        show_json([*data(found)])
    else:
        print("\n".join(map(text, found)) or "nobody did anything")
    return 0


def show_latest(args: argparse.Namespace) -> int:
    """Print what people did last, below other views; data are printed by `show` alone."""
    found = () if args.json else about(args, args.since or _SECONDS, (), "")
    if found:
        more = len(found) - _LATEST
        print(f"\nWho did it{f' (the last {_LATEST} of {len(found)}; --who shows all)' if more > 0 else ''}:")
        print("\n".join(text(one) for one in found[-_LATEST:]))
    return 0


def about(
    args: argparse.Namespace, seconds: float, plans: Iterable[PlanRecord], name: str
) -> tuple[UserAction, ...]:
    """What people did within this many seconds: with these plans, with what is called so, in a cluster."""
    done = stored(UserActionStore, args, lambda store: store.actions(since_seconds=seconds), ())
    wanted = (one for one in done if args.cluster in (None, one.cluster, one.cluster_name))
    return user_actions_about(wanted, plans, name)


def text(action: UserAction) -> str:
    """When, and who did what."""
    return f"{moment(action.created)}  {action.sentence}"


def data(actions: Iterable[UserAction]) -> Iterator[UserActionDone]:
    """The same for programs."""
    for action in actions:
        yield UserActionDone(**msgspec.structs.asdict(action), sentence_=action.sentence)
