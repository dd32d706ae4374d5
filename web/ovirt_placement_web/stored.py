"""Reads parts of the store for a view: nothing where there is no store yet."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

from ovirt_placement.config import Config
from ovirt_placement.store import opening
from ovirt_placement.store.access import StoreAccess
from ovirt_service.errors import UserError

#: How long the store may take to answer: a person has the rest of a view within a second.
STORE_SECONDS = 0.5
#: So long it is not asked again that has just not answered: a view reads several parts of it.
_REST_SECONDS: Final = 1.0

_Part = TypeVar("_Part", bound=StoreAccess)
_Item = TypeVar("_Item")

#: By the URL of a store that is away: until when it is not asked, and what it failed with.
_resting: Final[dict[str, tuple[float, UserError]]] = {}


def stored(part: type[_Part], config: Config, ask: Callable[[_Part], tuple[_Item, ...]]) -> tuple[_Item, ...]:
    """All that a part of the store answers. Raises `UserError` while the store is away."""
    failed = resting(config)
    if failed is not None:
        raise failed.with_traceback(None)
    try:
        answer = opening.stored(part, config, ask, (), patience_seconds=STORE_SECONDS)
    except UserError as error:
        rest(config, error)
        raise
    _resting.pop(config.store.url, None)
    return answer


def resting(config: Config) -> UserError | None:
    """What the store has just failed with, if it is not to be asked again yet."""
    until, failed = _resting.get(config.store.url, (0.0, None))
    return failed if monotonic() < until else None


def rest(config: Config, failed: UserError) -> None:
    """Do not ask the store again for a moment, since it failed with this."""
    _resting[config.store.url] = monotonic() + _REST_SECONDS, failed
