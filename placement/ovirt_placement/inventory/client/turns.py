"""Lets few processes read the engine at once where no inventory reads it for all of them.

The engine has a limited number of threads, and holds one for each start that waits for us: a proxy's workers
must not take the rest all at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ovirt_placement.inventory.expected import places

#: How many processes of a machine may read the engine at the same time.
READERS = 2
#: One that is stopped in its turn must not stop the others for good.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.01
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextlib.contextmanager
def turn(folder: Path | None) -> Iterator[None]:
    """Wait until fewer than `READERS` processes that share this folder are in their turn, 30 s at most.

    Without a folder, or one that nobody may write to, nothing is limited.
    """
    with contextlib.ExitStack() as held:
        if folder is not None:
            with contextlib.suppress(OSError):
                held.callback(os.close, _taken(folder))
        yield


def _taken(folder: Path) -> int:
    """One of the files, locked. Raises `OSError` if that cannot be, or takes too long."""
    places.make(folder)
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        for number in range(READERS):
            file = os.open(folder / f"reader-{number}", _FLAGS, 0o660)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(file)
                if not isinstance(error, BlockingIOError) or time.monotonic() > until:
                    raise
            else:
                return file
        time.sleep(_PAUSE_SECONDS)
