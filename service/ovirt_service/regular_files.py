"""Opens what should be a regular file without ever waiting: a FIFO in its place would block its reader."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ovirt_service import identity

_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: Path | str, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """Open a regular file and return its descriptor.

    Raises `OSError`, also for a directory, a FIFO, a socket or a device.
    """
    is_held = flags == os.O_RDONLY and identity.is_held(path)
    file = identity.opened(path) if is_held else os.open(path, flags | _FLAGS, mode)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file
