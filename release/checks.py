"""What keeps a commit from being released, and what a machine lacks for it: reported before all else."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import yaml

from release import CHECKOUT, version

#: Packages are built and read by these, and link what they call.
_PROGRAMS = ("rpmbuild", "rpm", "cc", "curl-config", "pg_config")


def lacking(environ: Mapping[str, str]) -> Iterator[str]:
    """Each thing in a sentence."""
    for program in _PROGRAMS:
        if shutil.which(program, path=environ.get("PATH", "")) is None:
            yield f"this machine has no {program}"
    python = environ.get("RPM_PYTHON", "/usr/bin/python3.12")
    if not os.access(python, os.X_OK):
        yield f"there is no {python}: RPM_PYTHON=FILE names the Python 3.12 that the RPMs are for"


#: Older locked requirements lack security updates.
_LOCK_LASTS = timedelta(days=90)
_LOCKS = "packaging/**/*.lock"


def faults(checkout: Path, now: datetime) -> Iterator[str]:
    """Each fault in a sentence that says what to do."""
    yield from _changed(checkout)
    yield from _tag(checkout)
    yield from _versions(checkout)
    yield from _changelog(checkout)
    yield from _locks(checkout, now)


def epoch(checkout: Path) -> int:
    """When what is released was committed: the time in all archives."""
    return int(_git(checkout, "log", "-1", "--format=%ct"))


def _changed(checkout: Path) -> Iterator[str]:
    changed = [line.split(maxsplit=1)[1] for line in _git(checkout, "status", "--porcelain").splitlines()]
    if changed:
        yield f"the tree differs from its commit; commit or remove: {', '.join(changed)}"


def _tag(checkout: Path) -> Iterator[str]:
    wanted = f"v{version(checkout)}"
    tags = _git(checkout, "tag", "--points-at", "HEAD").split()
    if tags != [wanted]:
        there = ", ".join(tags) or "none"
        yield f"the tags of this commit are not the version ({wanted} in setup.cfg) alone: {there}"


def _versions(checkout: Path) -> Iterator[str]:
    wanted = version(checkout)
    galaxy = yaml.safe_load((checkout / "packaging" / "ansible" / "galaxy.yml").read_text())
    for name, found in (
        ("simulator/setup.cfg", version(checkout / "simulator")),
        ("galaxy.yml", galaxy["version"]),
    ):
        if found != wanted:
            yield f"{name} has version {found}, and setup.cfg {wanted}"


def _changelog(checkout: Path) -> Iterator[str]:
    newest = next(sections((checkout / "CHANGELOG.md").read_text()), None)
    if newest is None or newest.version != version(checkout) or not newest.is_released:
        found = f"{newest.version} ({newest.day})" if newest else "nothing"
        yield f"CHANGELOG.md begins with {found}: it needs {version(checkout)} with the day of the release"


def _locks(checkout: Path, now: datetime) -> Iterator[str]:
    locks = sorted(checkout.glob(_LOCKS))
    if not locks:
        yield f"there are no locked requirements ({_LOCKS})"
    for lock in locks:
        name = str(lock.relative_to(checkout))
        changed = _git(checkout, "log", "-1", "--format=%ct", "--", name)
        made = datetime.fromtimestamp(int(changed), UTC) if changed else None
        if made is None or now - made > _LOCK_LASTS:
            age = f"{(now - made).days} days old" if made else "not committed"
            yield f"{name} is {age}: lock again what it names; {_LOCK_LASTS.days} days are the limit"


def _git(checkout: Path, *arguments: str) -> str:
    command = ("git", "-C", str(checkout), *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


# -- CHANGELOG.md by version: what others' changelogs are made of, so that a change is written down once.
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
    for number, day, body in _HEADING.findall(text):
        yield Section(number, day, tuple(entry.strip() for entry in _ENTRY.findall(body)))


def collection_changelog(text: str | None = None) -> str:
    """The changelog of the collection for Ansible."""
    parts = [_HEAD]
    for number, day, entries in sections(SOURCE.read_text() if text is None else text):
        named = [entry for entry in entries if "Ansible" in entry]
        if named:
            parts.append("\n".join((f"## {number} ({day})\n", *named, "")))
    return "\n".join(parts)
