"""What a thread asks of its requests: a check right before one is sent, and how long it waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_checks: ContextVar[tuple[Callable[[], None], ...]] = ContextVar("checks", default=())
_longest: ContextVar[float | None] = ContextVar("longest", default=None)


@contextmanager
def checked(check: Callable[[], None]) -> Iterator[None]:
    """Have `check` called before this thread sends, after any log-in; what it raises prevents that."""
    token = _checks.set((*_checks.get(), check))
    try:
        yield
    finally:
        _checks.reset(token)


def check() -> None:
    """Ask; called by the connection."""
    for one in _checks.get():
        one()


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
