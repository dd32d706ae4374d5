"""The names of VMs, hosts, clusters and groups as text, for shells that complete them without Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ovirt_placement.inventory.published.replacing import replaced
from ovirt_placement.model import Snapshot

FILE_NAME = "names"
#: No shell is to search more than these; the engine's own names are shorter.
_MOST_NAMES = 100_000
_LONGEST_NAME = 255


class NameList:
    """A file with lines of kind, tab, name: written only when names have changed."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._written: bytes | None = None

    def publish(self, snapshot: Snapshot) -> None:
        """Write the names, if they are not what was written; where that fails, the next call tries again."""
        content = names_text(snapshot).encode()
        if content == self._written:
            return
        with contextlib.suppress(OSError):  # no decision waits for what only shells read
            replaced(self._path, (content,))
            self._written = content

    def withdraw(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()


def names_text(snapshot: Snapshot) -> str:
    """One line for each name: its kind (`vm`, `host`, `cluster`, `group`), a tab, the name.

    Left out is what a line of text or an argument cannot hold: control characters, a leading hyphen.
    """
    lines = sorted({f"{kind}\t{name}\n" for kind, name in _named(snapshot) if _is_plain(name)})
    return "".join(lines[:_MOST_NAMES])


def _named(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    yield from (("cluster", each.name) for each in snapshot.clusters)
    yield from (("group", each.name) for each in snapshot.affinity_groups)
    yield from (("host", each.name) for each in snapshot.hosts)
    yield from (("vm", each.name) for each in snapshot.vms)


def _is_plain(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not name.startswith("-")
