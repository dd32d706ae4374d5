"""How old an answer may be: what is known of the engine, of old if need be, and the date of an answer."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar

import msgspec

from ovirt_placement import inventory
from ovirt_placement.answers.document import Document
from ovirt_placement.config import Config
from ovirt_placement.inventory import Measured

#: Long enough to see whether there is an inventory.
_A_MOMENT = 0.2

_Answer = TypeVar("_Answer", bound=Document)


class KnownState(NamedTuple):
    """What is known of the engine, and if the engine is away, since when it may have changed."""

    known: inventory.Known
    #: How old it is; None if it is no older than was asked for.
    age_seconds: float | None = None
    #: Why nothing newer is known.
    error: str | None = None


def known_state(
    config: Config,
    *,
    deadline: float,
    max_age: float | None = None,
    measured: Measured = Measured.FOR_RESERVATION,
    stale: bool = False,
) -> KnownState:
    """What is known no older than `max_age` seconds, or than the configuration allows.

    With `stale`, what the inventory published last, however old, where nothing newer is to be had until the
    `deadline` (seconds). Raises `NoSnapshot` if there is nothing.
    """
    try:
        return KnownState(
            inventory.known(config=config, max_age=max_age, deadline=deadline, measured=measured)
        )
    except inventory.NoSnapshot as error:
        if not stale:
            raise
        return _last_known(config, error)


def dated(answer: _Answer, age_seconds: float | None) -> _Answer:
    """The answer with its age; as it is, if it is of now."""
    if age_seconds is None:
        return answer
    as_of = datetime.now(UTC) - timedelta(seconds=age_seconds)
    return msgspec.structs.replace(
        answer, as_of=as_of.isoformat(timespec="seconds"), age_seconds=round(age_seconds, 1)
    )


def _last_known(config: Config, error: inventory.NoSnapshot) -> KnownState:
    """What the inventory published last; raises the error if there is nothing."""
    try:
        found = inventory.known(config=config, max_age=math.inf, deadline=_A_MOMENT)
    except inventory.NoSnapshot:
        raise error from None
    age = None if found.publication is None else found.publication.age_seconds
    return KnownState(found, age, str(error))
