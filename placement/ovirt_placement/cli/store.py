"""Opens a part of the store for a command."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from typing import TypeVar

from ovirt_placement import config
from ovirt_placement.store import opening
from ovirt_placement.store.access import StoreAccess

_Part = TypeVar("_Part", bound=StoreAccess)


def opened(
    part: type[_Part], args: argparse.Namespace, *, create: bool = True
) -> AbstractContextManager[_Part]:
    """Open it for the engine of the configuration named; without `create`, to read what is there."""
    return opening.opened(part, config.load(args.config), create=create)
