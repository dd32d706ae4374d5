"""What can be wrong with the system: an old SQLite, a Python without updates, a socket not enabled."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.config import Config

#: Where the files of the system are.
ROOT = Path("/")
_Version = tuple[int, ...]
#: The store asks SQLite for nothing that came later.
_OLDEST_SQLITE = (3, 26, 0)
#: The first day without updates for EL's Pythons, and what to take then (docs/platforms.md).
_ENDED: dict[tuple[str, _Version], tuple[date, str]] = {
    ("el8", (3, 11)): (date(2026, 6, 1), "Python 3.12"),
    ("el9", (3, 11)): (date(2026, 6, 1), "Python 3.12"),
    ("el9", (3, 12)): (date(2027, 5, 1), "Python 3.14, which comes with 9.8"),
    ("el8", (3, 12)): (date(2029, 6, 1), "EL 9 or 10"),
}
#: Links that `systemctl enable` makes.
_ENABLED = Path("etc/systemd/system")


def examine_platform(config: Config, root: Path) -> Iterator[Finding]:
    """Look at what we run on, and at the units that are enabled below `root`."""
    yield from examine_sqlite(config.store.url, sqlite3.sqlite_version_info)
    yield from examine_python(root, sys.version_info[:2], Path(sys.base_prefix), datetime.now(UTC).date())
    yield from examine_socket(root)


def examine_sqlite(url: str, version: _Version) -> Iterator[Finding]:
    """Look whether the store's SQLite is one that it is tested with."""
    if url.startswith("sqlite") and version < _OLDEST_SQLITE:
        yield Finding(
            kind="old_sqlite",
            what=f"SQLite is {_dotted(version)}, older than {_dotted(_OLDEST_SQLITE)}: the store may fail",
            remedy="run with the Python of EL 8.10 or later, or let [store] url name a PostgreSQL",
        )


def examine_python(root: Path, version: _Version, base: Path, today: date) -> Iterator[Finding]:
    """Look whether EL still updates its Python, if that runs us; of another nothing is known."""
    ended, instead = _ENDED.get((_platform(root), version), (date.max, ""))
    if base == Path("/usr") and today >= ended:
        yield Finding(
            kind="python_ended",
            what=f"this system's Python {_dotted(version)} has had no security updates since {ended}",
            remedy=f"install this release again, with {instead}",
        )


def examine_socket(root: Path) -> Iterator[Finding]:
    """Look whether a proxy that starts with the machine has the socket which stays open while it restarts."""
    wanted = root / _ENABLED
    service = wanted / "multi-user.target.wants" / "ovirt-scheduler-proxy.service"
    socket = wanted / "sockets.target.wants" / "ovirt-scheduler-proxy.socket"
    if service.is_symlink() and not socket.is_symlink():
        yield Finding(
            kind="socket_not_enabled",
            what="ovirt-scheduler-proxy.service is enabled and its socket is not: while it restarts, the"
            " engine's calls are refused, and VMs start without our units",
            remedy="systemctl enable ovirt-scheduler-proxy.socket, then systemctl stop"
            " ovirt-scheduler-proxy.service, and systemctl start ovirt-scheduler-proxy.socket"
            " ovirt-scheduler-proxy.service",
        )


def _platform(root: Path) -> str:
    """EL and its number, as os-release has it of all that are built from it: el9."""
    try:
        text = (root / "etc/os-release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r'^PLATFORM_ID="?platform:(\w+)', text, re.MULTILINE)
    return found[1] if found else ""


def _dotted(version: _Version) -> str:
    return ".".join(map(str, version))
