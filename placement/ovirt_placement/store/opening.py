"""Opens a part of the store of the engine that is configured, for as long as a person is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from ovirt_placement.config import Config
from ovirt_placement.store.access import StoreAccess
from ovirt_placement.store.database import StoreUnmade

#: A person waits longer for a store that others write to than a placement can.
PERSON_SECONDS = 5.0

_Part = TypeVar("_Part", bound=StoreAccess)
_Answer = TypeVar("_Answer")
_Nothing = TypeVar("_Nothing")


@contextmanager
def opened(
    part: type[_Part], config: Config, *, patience_seconds: float = PERSON_SECONDS, create: bool = True
) -> Iterator[_Part]:
    """Open it, and close it at the end; without `create`, to read what is there."""
    url, engine = config.store.url, config.engine.name
    with closing(part(url, engine=engine, patience_seconds=patience_seconds, create=create)) as store:
        yield store


def stored(
    part: type[_Part],
    config: Config,
    ask: Callable[[_Part], _Answer],
    nothing: _Nothing,
    *,
    patience_seconds: float = PERSON_SECONDS,
) -> _Answer | _Nothing:
    """What it answers; `nothing` where there is no store yet. Raises `StoreAway`."""
    try:
        with opened(part, config, patience_seconds=patience_seconds, create=False) as store:
            return ask(store)
    except StoreUnmade:
        return nothing
