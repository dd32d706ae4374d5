"""Where traces are left: in a folder that every process of the machine that decides can write to."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from functools import lru_cache
from pathlib import Path

from ovirt_placement.config import Config
from ovirt_service import identity
from ovirt_service.digests import digest_name

_FOLDER = "expected"
#: For the owner and the group; what is made in it belongs to the group, too.
_MODE = 0o2770
#: Bytes of the digest that names a folder in memory.
_NAME_SIZE = 8


@lru_cache(maxsize=64)
def next_to(directory: Path) -> Path:
    """The folder next to what an inventory publishes."""
    return directory / _FOLDER


def find(config: Config) -> Path | None:
    """Next to what the inventory publishes, if one may write there; else in memory, by user and engine.

    None if somebody else has put something in that place, and for root where it is not root's.
    """
    directory = config.inventory.directory
    if identity.is_others(directory):
        return None
    for place in (next_to(directory), directory):
        if os.access(place, os.W_OK | os.X_OK):
            return next_to(directory)
    place = _in_memory(config.engine.url, directory)
    return place if _is_ours(place) else None


@lru_cache(maxsize=64)
def _in_memory(engine: str, directory: Path) -> Path:
    memory = Path("/dev/shm")  # noqa: S108 - its owner is looked at
    base = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    return base / f"ovirt-placement-{os.getuid()}-{digest_name(f'{engine} {directory}', _NAME_SIZE)}"


def make(folder: Path) -> None:
    """Make a folder for traces. Raises `OSError` if that cannot be."""
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
