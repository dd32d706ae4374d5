"""Remembers, apart from a store, that it was made: one that is gone later is not begun again in silence.

With it would go what is under way, what people have set, and who may act. Next to an SQLite store stands a
file; that a PostgreSQL store was made is remembered in the services' state directory, where there is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import URL

from ovirt_placement.store import ownership
from ovirt_service.digests import digest_name, former_name, take_over

_STATE = Path("/var/lib/ovirt-placement")
_ENDING = ".made"
#: Bytes of the digest in the name of a PostgreSQL store's marker.
_NAME_SIZE = 8


class Marker:
    """The marker of one store; one that cannot be written is none."""

    def __init__(self, url: URL) -> None:
        self._file = _place(url, digest_name)
        #: Where an earlier release has set it.
        self._former = _place(url, former_name)
        #: What this process has seen itself.
        self._seen = False

    @property
    def is_set(self) -> bool:
        """Whether the store was there before."""
        return self._seen or os.path.exists(self._file) or os.path.exists(self._former)

    def set(self, *, writes: bool) -> None:
        """Remember that the store is there; a reader remembers it for itself alone."""
        self._seen = True
        try:
            if writes:
                take_over(self._former, self._file)
            if writes and self._file.parent.is_dir() and not self._file.exists():
                ownership.make(self._file)
                self._file.touch(mode=0o660)
        except OSError:
            pass  # who may not write there has at least seen it

    def forget(self) -> None:
        """Let the store be made again; raises `OSError` if that cannot be written."""
        self._seen = False
        for file in (self._file, self._former):
            file.unlink(missing_ok=True)


def next_to(path: str) -> str:
    """The marker of the SQLite store that stands here."""
    return path + _ENDING


def _place(url: URL, name: Callable[[str, int], str]) -> Path:
    if url.get_backend_name() == "sqlite":
        return Path(next_to(url.database or ""))
    state = Path(os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or _STATE)
    named = f"{url.host} {url.port} {url.database} {sorted(url.query.items())}"
    return state / f"store-{name(named, _NAME_SIZE)}{_ENDING}"
