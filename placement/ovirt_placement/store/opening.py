"""Opens a part of the store of the engine that is configured, for as long as a person is served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

from ovirt_placement.config import Config
from ovirt_placement.store.access import StoreAccess

#: A person waits longer for a store that others write to than a placement can.
PERSON_SECONDS = 5.0

_Part = TypeVar("_Part", bound=StoreAccess)


@contextmanager
def opened(
    part: type[_Part], config: Config, *, patience_seconds: float = PERSON_SECONDS, create: bool = True
) -> Iterator[_Part]:
    """Open it, and close it at the end; without `create`, to read what is there."""
    url, engine = config.store.url, config.engine.name
    with closing(part(url, engine=engine, patience_seconds=patience_seconds, create=create)) as store:
        yield store
