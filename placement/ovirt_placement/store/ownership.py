"""Lets files that root makes in the store's directory be its owner's, so that services can write them."""

from __future__ import annotations

import os
from pathlib import Path


def make(path: Path) -> None:
    """Make an empty file as its directory is: its owner, its group, and what these may read and write.

    Other users than root make files of their own. Raises `OSError`.
    """
    if os.geteuid() != 0:
        return
    directory = path.parent.stat()
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.fchown(file, directory.st_uid, directory.st_gid)
        os.fchmod(file, directory.st_mode & 0o666)
    finally:
        os.close(file)


def is_of_another(path: Path) -> bool:
    """Whether a file belongs to somebody else than its directory, whose owner cannot write it therefore."""
    directory, file = path.parent.stat(), path.stat()
    return file.st_uid != directory.st_uid and not (
        file.st_gid == directory.st_gid and bool(file.st_mode & 0o020)
    )
