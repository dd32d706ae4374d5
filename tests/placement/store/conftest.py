"""Parts of a store that tests open, closed once they have ended."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import pytest

from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.sql.access import StoreAccess
from tests.stored import listening

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


@pytest.fixture
def store(opening: Opening) -> Store:
    return opening(Store)


@pytest.fixture
def history(opening: Opening) -> HistoryStore:
    return opening(HistoryStore)


@pytest.fixture
def asked() -> Iterator[Counter[str]]:
    """What this thread has asked of stores; the inventory reads them in threads of its own."""
    found, here = Counter[str](), threading.get_ident()

    def counting(kind: str) -> Callable[..., None]:
        def count(*_: Any) -> None:
            found[kind] += threading.get_ident() == here

        return count

    with listening(begin=counting("transactions"), before_cursor_execute=counting("statements")):
        yield found


def at_once(count: int, ask: Callable[[int], object]) -> list[object]:
    """What each gets of several who ask at the same moment; for some it may be an exception."""
    start = threading.Barrier(count)
    answers: list[object] = []

    def come(number: int) -> None:
        start.wait()
        try:
            answers.append(ask(number))
        except Exception as error:
            answers.append(error)

    threads = [threading.Thread(target=come, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
