"""Opens a part of the store of the engine that is configured, for as long as a person is served."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import closing, contextmanager
from typing import TypeVar

from ovirt_placement.config import Config
from ovirt_placement.store.sql.access import StoreAccess
from ovirt_placement.store.sql.connections import parse_url, show_url
from ovirt_placement.store.sql.database import StoreAway, StoreUnmade
from ovirt_service.process import in_background

#: A person waits longer for a store that others write to than a placement can.
PERSON_SECONDS = 5.0

#: A store that waits for others says so by itself, a little later.
_MORE_SECONDS = 0.2
#: While this number of readings of a store hang, none is waited for.
_MOST_HANGING = 2
_hanging = Counter[str]()
_changing = threading.Lock()

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

    def read() -> _Answer | _Nothing:
        try:
            with opened(part, config, patience_seconds=patience_seconds, create=False) as store:
                return ask(store)
        except StoreUnmade:
            return nothing

    return answered_within(config, patience_seconds, read)


def answered_within(config: Config, seconds: float, read: Callable[[], _Answer]) -> _Answer:
    """What is read of the store, in a thread: a server that is stopped keeps who asks it for ever.

    Raises `StoreAway` if that takes longer, at once while others wait for it in vain, and what `read` raises.
    """
    url = config.store.url
    if _hanging[url] >= _MOST_HANGING:
        raise _away(url, seconds)
    reading = in_background(read, "store")
    if not wait([reading], seconds + _MORE_SECONDS).done:
        _count_hanging(url, 1)
        reading.add_done_callback(lambda _: _count_hanging(url, -1))
        raise _away(url, seconds)
    return reading.result()


def _count_hanging(url: str, change: int) -> None:
    with _changing:
        _hanging[url] += change


def _away(url: str, seconds: float) -> StoreAway:
    return StoreAway(
        f"store {show_url(parse_url(url))}: has not answered within {seconds:g} s",
        "it, or its machine, hangs: systemctl status postgresql there shows whether it runs",
    )
