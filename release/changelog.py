"""CHANGELOG.md by version: what others' changelogs are made of, so that a change is written down once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from release import CHECKOUT

SOURCE = CHECKOUT / "CHANGELOG.md"
COLLECTION = CHECKOUT / "packaging" / "ansible" / "CHANGELOG.md"
#: A heading: the version, and the day of its release.
_HEADING = re.compile(r"^## (\S+) \(([^)]+)\)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^- .*?(?=^- |\Z)", re.DOTALL | re.MULTILINE)
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEAD = """\
# Changes of the collection

Made from the project's own (`make reference`): its entries that name Ansible.
"""


class Section(NamedTuple):
    """What came with a version."""

    version: str
    #: As YYYY-MM-DD, or what stands there before the release.
    day: str
    entries: tuple[str, ...]

    @property
    def is_released(self) -> bool:
        return _ISO_DAY.fullmatch(self.day) is not None


def sections(text: str) -> Iterator[Section]:
    """The newest first, as they stand there."""
    for version, day, body in _HEADING.findall(text):
        yield Section(version, day, tuple(entry.strip() for entry in _ENTRY.findall(body)))


def of_collection(text: str | None = None) -> str:
    """The changelog of the collection for Ansible."""
    parts = [_HEAD]
    for version, day, entries in sections(SOURCE.read_text() if text is None else text):
        named = [entry for entry in entries if "Ansible" in entry]
        if named:
            parts.append("\n".join((f"## {version} ({day})\n", *named, "")))
    return "\n".join(parts)
