"""Keeps what a rule derives from a whole snapshot with that snapshot, so that it is derived once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from ovirt_placement.model import Snapshot

Derived = TypeVar("Derived")


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

    return look_up
