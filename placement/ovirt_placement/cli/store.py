"""Opens a part of the store for a command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from ovirt_placement import config
from ovirt_placement.store.access import StoreAccess

#: A person waits longer for a store that others write to than a placement can.
PATIENCE_SECONDS = 5.0

_Part = TypeVar("_Part", bound=StoreAccess)


@contextmanager
def opened(part: type[_Part], args: argparse.Namespace, *, create: bool = True) -> Iterator[_Part]:
    """Open it for the engine of the configuration named; without `create`, to read what is there."""
    loaded = config.load(args.config)
    store = part(
        loaded.store.url, engine=loaded.engine.name, patience_seconds=PATIENCE_SECONDS, create=create
    )
    try:
        yield store
    finally:
        store.close()
