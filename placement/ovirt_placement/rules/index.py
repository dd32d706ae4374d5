"""Keeps what a rule derives from a whole snapshot with that snapshot, so that it is derived once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from ovirt_placement.model import Snapshot

Derived = TypeVar("Derived")

#: What is derived once a snapshot, by the name that it has in the snapshot's dictionary.
_look_ups: dict[str, Callable[[Snapshot], object]] = {}


def once_per_snapshot(derive: Callable[[Snapshot], Derived]) -> Callable[[Snapshot], Derived]:
    """Compute on the first call for a snapshot; later calls look up what the first one found.

    A snapshot never changes, so this is memory and no state. It lies in the snapshot's own
    dictionary, as its cached properties do, and goes when the snapshot goes.
    """
    name = f"{derive.__module__}.{derive.__qualname__}"

    @wraps(derive)
    def look_up(snapshot: Snapshot) -> Derived:
        known = snapshot.__dict__
        if name not in known:
            known[name] = derive(snapshot)
        return cast("Derived", known[name])

    _look_ups[name] = look_up
    return look_up


def prepare(snapshot: Snapshot, like: Snapshot) -> None:
    """Make the look-ups that were made in another snapshot, in their order: they will be asked for again."""
    for name in tuple(like.__dict__):
        look_up = _look_ups.get(name)
        if look_up is None:
            getattr(snapshot, name)  # one of the snapshot's own
        else:
            look_up(snapshot)
