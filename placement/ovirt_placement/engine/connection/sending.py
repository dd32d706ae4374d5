"""Asks, right before something is sent that changes the engine, whether the reason for it still holds.

Between a decision and its request may lie a log-in, and any time: a slow engine, a process that is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_checks: ContextVar[tuple[Callable[[], None], ...]] = ContextVar("checks", default=())


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
