"""Puts a whole file in the place of another: readers find the one before or the one after."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

#: The service writes, its group reads.
_MODE = 0o640


def replaced(path: Path, contents: Iterable[bytes]) -> tuple[int, ...]:
    """Put a new file in the place of what is there; return its identity. Raises `OSError`."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)  # whatever it is: opening a FIFO would wait for its reader
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(temporary, flags, _MODE), "wb") as file:
            file.writelines(contents)
            file.flush()
            found = identity(os.fstat(file.fileno()))
        temporary.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)  # it takes the room that others need
        raise
    return found


def identity(found: os.stat_result) -> tuple[int, ...]:
    """What distinguishes a file from another that was put in its place: inode, mode, owner and length."""
    return found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_size
