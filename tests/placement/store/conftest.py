"""Parts of a store that tests open, closed once they have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

import pytest

from ovirt_placement.store.access import StoreAccess

_Part = TypeVar("_Part", bound=StoreAccess)


class Opening(Protocol):
    """Opens a part of the store of the engine `default`."""

    def __call__(self, part: type[_Part], **more: Any) -> _Part: ...


@pytest.fixture
def opening(url: str) -> Iterator[Opening]:
    parts: list[StoreAccess] = []

    def opened(part: type[_Part], **more: Any) -> _Part:
        found = part(url, **{"engine": "default", "patience_seconds": 30, **more})
        parts.append(found)
        return found

    yield opened
    for part in parts:
        part.close()
