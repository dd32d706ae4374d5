"""Lets few processes read the engine at once where no inventory reads it for all of them.

The engine has a limited number of threads, and holds one for each start that waits for us: a proxy's workers
must not take the rest all at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ovirt_placement.config import Config
from ovirt_service import identity
from ovirt_service.digests import digest_name

#: How many processes of a machine may read the engine at the same time.
READERS = 2
#: One that is stopped in its turn must not stop the others for good.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.01
_FOLDER = "readers"
#: For the owner and the group; what is made in it belongs to the group, too.
_MODE = 0o2770
#: Bytes of the digest that names a folder in memory.
_NAME_SIZE = 8
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
    make(folder)
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


def next_to(directory: Path) -> Path:
    """The folder in the one of the service."""
    return directory / _FOLDER


def find_folder(config: Config) -> Path | None:
    """With the service, if one may write there; else in memory, by user and engine.

    None if somebody else has put something in that place, and for root where it is not root's.
    """
    directory = config.inventory.directory
    if identity.is_others(directory):
        return None
    for place in (next_to(directory), directory):
        if os.access(place, os.W_OK | os.X_OK):
            return next_to(directory)
    memory = Path("/dev/shm")  # noqa: S108 - its owner is looked at
    base = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    name = digest_name(f"{config.engine.url} {directory}", _NAME_SIZE)
    place = base / f"ovirt-placement-{os.getuid()}-{name}"
    return place if _is_ours(place) else None


def make(folder: Path) -> None:
    """Make the folder. Raises `OSError` if that cannot be."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        try:
            os.chmod(folder, _MODE)
        except PermissionError:
            # A unit with RestrictSUIDSGID=yes may not hand on a group: the folder is then its user's alone.
            os.chmod(folder, _MODE & 0o777)


def _is_ours(place: Path) -> bool:
    try:
        found = os.lstat(place)
    except OSError:
        return True
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
