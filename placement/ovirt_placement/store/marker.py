"""Remembers, apart from a store, that it was made: one that is gone later is not begun again in silence.

With it would go what is under way, what people have set, and who may act. Next to an SQLite store stands a
file; that a PostgreSQL store was made is remembered in the services' state directory, where there is one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL

from ovirt_placement.config import STATE_DIRECTORY
from ovirt_service import identity
from ovirt_service.digests import digest_name

_ENDING = ".made"
#: Bytes of the digest in the name of a PostgreSQL store's marker.
_NAME_SIZE = 8


class Marker:
    """The marker of one store; one that cannot be written is none."""

    def __init__(self, url: URL) -> None:
        self._file = _place(url)
        #: What this process has seen itself.
        self._seen = False

    @property
    def is_set(self) -> bool:
        """Whether the store was there before."""
        return self._seen or os.path.lexists(self._file)

    def set(self, *, writes: bool) -> None:
        """Remember that the store is there; a reader remembers it for itself alone."""
        self._seen = True
        try:
            if writes and not identity.is_others(self._file.parent):
                make_as_folder(self._file)
        except OSError:
            pass  # who may not write there has at least seen it


def make_as_folder(file: Path) -> None:
    """Make an empty file that owner and group of its folder may read and write as they may write there.

    A link in its place is not followed. Raises `OSError`, also if there is something already.
    """
    folder = file.parent.stat()
    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # who is not in that group keeps his own
            os.fchown(made, -1, folder.st_gid)
        os.fchmod(made, folder.st_mode & 0o660)
    finally:
        os.close(made)


def next_to(path: str) -> str:
    """The marker of the SQLite store that stands here."""
    return path + _ENDING


def _place(url: URL) -> Path:
    if url.get_backend_name() == "sqlite":
        return Path(next_to(url.database or ""))
    state = Path(os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or STATE_DIRECTORY)
    named = f"{url.host} {url.port} {url.database} {sorted(url.query.items())}"
    return state / f"store-{digest_name(named, _NAME_SIZE)}{_ENDING}"
