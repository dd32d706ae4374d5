"""Bounds how long a thread waits for an answer, where there is another way to ask than to wait on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_longest: ContextVar[float | None] = ContextVar("longest", default=None)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Have each request of this thread that takes longer end with `EngineAway`; never later than it would."""
    token = _longest.set(seconds)
    try:
        yield
    finally:
        _longest.reset(token)


def longest() -> float | None:
    """Say how many seconds; None where the settings alone say it. For the connection."""
    return _longest.get()
