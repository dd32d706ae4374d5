"""Opens and reads parts of the store for a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from ovirt_placement import config
from ovirt_placement.store import opening
from ovirt_placement.store.access import StoreAccess

_Part = TypeVar("_Part", bound=StoreAccess)
_Answer = TypeVar("_Answer")
_Nothing = TypeVar("_Nothing")


def opened(
    part: type[_Part], args: argparse.Namespace, *, create: bool = True
) -> AbstractContextManager[_Part]:
    """Open it for the engine of the configuration named; without `create`, to read what is there."""
    return opening.opened(part, config.load(args.config), create=create)


def stored(
    part: type[_Part], args: argparse.Namespace, ask: Callable[[_Part], _Answer], nothing: _Nothing
) -> _Answer | _Nothing:
    """What it answers of that engine; `nothing` where there is no store yet."""
    return opening.stored(part, config.load(args.config), ask, nothing)
