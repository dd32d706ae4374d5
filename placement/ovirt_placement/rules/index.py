"""Keeps what a rule derives from a whole snapshot with that snapshot, so that it is derived once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from ovirt_placement.model import Pending, Snapshot

Part = TypeVar("Part")
Derived = TypeVar("Derived")
Arguments = ParamSpec("Arguments")

#: What is derived once a snapshot, by the name that it has in the snapshot's dictionary.
_look_ups: dict[str, Callable[..., object]] = {}
#: Of some of it, the part of a snapshot that it is derived from.
_parts: dict[str, Callable[[Snapshot], object]] = {}
#: What is the same whatever is pending.
_not_of_pending: set[str] = set()
#: How some of it is derived with the help of what was derived from the snapshot before.
_continued: dict[str, Callable[[Snapshot, Snapshot], object]] = {}


def once_per_snapshot(
    derive: Callable[Concatenate[Snapshot, Arguments], Derived],
) -> Callable[Concatenate[Snapshot, Arguments], Derived]:
    """Compute on the first call for a snapshot, or for each of some arguments; then look up what was found.

    A snapshot never changes, so this is memory and no state. It lies in the snapshot's own
    dictionary, as its cached properties do, and goes when the snapshot goes.
    """
    name = _name(derive)

    @wraps(derive)
    def look_up(snapshot: Snapshot, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Derived:
        found: dict[tuple[Any, ...], Derived] = snapshot.__dict__.setdefault(name, {})
        if args not in found:
            found[args] = derive(snapshot, *args, **kwargs)
        return found[args]

    _look_ups[name] = look_up
    return look_up


def once_whatever_is_pending(derive: Callable[[Snapshot], Derived]) -> Callable[[Snapshot], Derived]:
    """Compute once for a snapshot and all those that differ in nothing but what is pending."""
    _not_of_pending.add(_name(derive))
    return once_per_snapshot(derive)


def once_per_part(
    part: Callable[[Snapshot], Part],
) -> Callable[[Callable[[Part], Derived]], Callable[[Snapshot], Derived]]:
    """Compute on the first call for a part of a snapshot; the next one shares what was found.

    It does when `share` tells of both, and if the part is not only equal but the same object in both.
    """

    def decorate(derive: Callable[[Part], Derived]) -> Callable[[Snapshot], Derived]:
        @wraps(derive)
        def of_snapshot(snapshot: Snapshot) -> Derived:
            return derive(part(snapshot))

        _parts[_name(derive)] = part
        return once_per_snapshot(of_snapshot)

    return decorate


def continued(
    derive: Callable[[Snapshot, Snapshot | None], Derived],
) -> Callable[[Snapshot], Derived]:
    """Compute on the first call for a snapshot, or from the one before when `share` tells of both.

    `derive` is given that one, too, or none: what both have in common need not be looked at again.
    """

    @wraps(derive)
    def alone(snapshot: Snapshot) -> Derived:
        return derive(snapshot, None)

    _continued[_name(derive)] = derive
    return once_per_snapshot(alone)


def with_more_pending(base: Snapshot, more: tuple[Pending, ...], *, like: Snapshot) -> Snapshot:
    """The snapshot with more that is pending, and with all look-ups that this does not change.

    What it does change is derived from `like`, which differs from it in what is pending at most.
    """
    laid = replace(base, pending=base.pending + more)
    # What was looked up in one holds for all of them, and for the next version made of the base.
    for source, target in ((like, base), (base, laid)):
        for name, found in tuple(source.__dict__.items()):
            if name in _not_of_pending or (name not in _look_ups and name != "pending_hosts"):
                target.__dict__.setdefault(name, found)
    by_vm = dict(base.pending_hosts)
    for entry in more:
        by_vm[entry.vm] = tuple(dict.fromkeys((*by_vm.get(entry.vm, ()), entry.host)))
    laid.__dict__["pending_hosts"] = by_vm
    share(laid, like)
    return laid


def share(snapshot: Snapshot, like: Snapshot) -> None:
    """Let a snapshot have what was looked up in the one before, as far as that holds or helps."""
    for name, part in _parts.items():
        if name in like.__dict__ and part(snapshot) is part(like):
            snapshot.__dict__.setdefault(name, like.__dict__[name])
    for name, derive in _continued.items():
        if name in like.__dict__ and name not in snapshot.__dict__:
            snapshot.__dict__[name] = {(): derive(snapshot, like)}


def prepare(snapshot: Snapshot, like: Snapshot) -> None:
    """Make the look-ups that were made in another snapshot, in their order: they will be asked for again."""
    share(snapshot, like)
    for name, found in tuple(like.__dict__.items()):
        look_up = _look_ups.get(name)
        if look_up is None:
            getattr(snapshot, name)  # one of the snapshot's own
        else:
            for args in tuple(found):
                look_up(snapshot, *args)


def _name(derive: Callable[..., object]) -> str:
    return f"{derive.__module__}.{derive.__qualname__}"
