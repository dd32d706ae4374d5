"""Reads parts of the store for a view: nothing where there is no store yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ovirt_placement.config import Config
from ovirt_placement.store import opening
from ovirt_placement.store.access import StoreAccess

#: How long the store may take to answer: a person has the rest of a view within a second.
STORE_SECONDS = 0.7

_Part = TypeVar("_Part", bound=StoreAccess)
_Answer = TypeVar("_Answer")


def stored(part: type[_Part], config: Config, ask: Callable[[_Part], _Answer], nothing: _Answer) -> _Answer:
    """What a part of the store answers. Raises `UserError` while the store is away."""
    return opening.stored(part, config, ask, nothing, patience_seconds=STORE_SECONDS)
