"""Puts the outcomes of a call's units together into one result: pure functions."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import compress

import msgspec

from ..pool.outcome import Cause, Outcome, failed
from ..worker.answers import is_vm_id
from ..xmlrpc import writing
from .answer import Asked

_decode_balance = msgspec.json.Decoder(tuple[str, list[str]]).decode

#: Whether the failure of the unit of this name rejects every host.
Rejects = Callable[[str], bool]


def merge_filters(asked: Sequence[Asked], hosts: list[str], rejects: Rejects) -> list[str]:
    """The hosts that every unit accepts, in the order they were asked.

    A unit that failed accepts all of them; none if it refuses the VM, or if `rejects` says so.
    """
    kept = hosts
    masks = [item.outcome.body for item in asked if item.outcome.failure is None]
    if any(rejects_all(item, rejects) for item in asked):
        return []
    if len(masks) == 1:
        return list(compress(hosts, masks[0]))
    if masks:
        kept = [host for host, votes in zip(hosts, zip(*masks, strict=True), strict=True) if all(votes)]
    return kept


def fallen_hosts(asked: Sequence[Asked], hosts: list[str], rejects: Rejects) -> dict[str, list[str]]:
    """For each host that fell, the units that dropped it."""
    fallen: dict[str, list[str]] = {}
    for item in asked:
        if item.outcome.failure is not None:
            dropped = hosts if rejects_all(item, rejects) else []
        else:
            dropped = [host for host, accepted in zip(hosts, item.outcome.body, strict=True) if not accepted]
        for host in dropped:
            fallen.setdefault(host, []).append(item.unit)
    return fallen


def rejects_all(item: Asked, rejects: Rejects) -> bool:
    """Whether a filter without an answer leaves no host."""
    failure = item.outcome.failure
    return failure is not None and (failure.cause is Cause.REFUSED or rejects(item.unit))


def merge_scores(asked: Sequence[Asked], hosts: list[str]) -> writing.Rendered:
    """`[host, weight, unit]` for every host and every unit that did not fail; weights stay raw."""
    return writing.array(
        writing.weights(hosts, array("i", item.outcome.body), item.unit)
        for item in asked
        if item.outcome.failure is None
    )


def read_balance(outcome: Outcome) -> tuple[str, list[str]]:
    """The VM to move and the hosts that may take it: empty ones where nothing is to be moved."""
    if outcome.failure is not None:
        return "", []
    return _decode_balance(outcome.body)


def checked(outcome: Outcome, hosts: Sequence[str], width: int | None) -> Outcome:
    """The outcome if its body has `width` bytes for each host (None: is a balance answer), else a failure.

    Units cannot cause such bodies by what they answer, only by writing into their worker's connection.
    """
    if outcome.failure is not None:
        return outcome
    fits = _is_balance(outcome, hosts) if width is None else len(outcome.body) == len(hosts) * width
    return outcome if fits else failed(Cause.CRASHED, "confused its worker process", outcome.seconds)


def _is_balance(outcome: Outcome, hosts: Sequence[str]) -> bool:
    """Whether it names a VM that the engine can read and hosts it asked about, or nothing at all."""
    try:
        vm, targets = read_balance(outcome)
    except msgspec.MsgspecError:
        return False
    return (is_vm_id(vm) and set(targets) <= set(hosts)) if targets else not vm
