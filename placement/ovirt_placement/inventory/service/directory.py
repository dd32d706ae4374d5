"""The directory of the service, where readers look: one process at a time owns it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ovirt_placement.inventory.client import turns
from ovirt_placement.inventory.published.protocol import SOCKET_NAME
from ovirt_service import identity
from ovirt_service.errors import UserError

_LOCK = "lock"


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Own the directory, and leave no socket there. Raises `UserError` if it cannot be used or is taken."""
    owner = _lock(directory)
    try:
        (directory / SOCKET_NAME).unlink(missing_ok=True)
        yield
    finally:
        (directory / SOCKET_NAME).unlink(missing_ok=True)
        os.close(owner)


def _lock(directory: Path) -> int:
    """Make the directory if need be, and lock it: the lock ends with this process, however that ends."""
    if identity.is_others(directory):
        raise UserError(f"[inventory] directory: {directory}: root publishes in none that others may write")
    try:
        directory.mkdir(exist_ok=True)
        turns.make(turns.next_to(directory))
        # A file of our own: any reader of the directory could hold a lock on that for ever.
        owner = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if not os.access(directory, os.W_OK):
            raise PermissionError(0, "may not write there")
    except OSError as error:
        raise UserError(f"[inventory] directory: {directory}: {error.strerror}") from None
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(owner)
        raise UserError(f"[inventory] directory: {directory}: another inventory publishes there") from None
    return owner
