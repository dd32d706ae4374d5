"""Groups of processes that share processors by weights, as systemd makes one for each unit."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.paths import CHECKOUT
from tests.proxy.running import eventually

_ALL = Path("/sys/fs/cgroup/cpu")
#: Of a weight of 100, and of all groups together: ahead of whatever else the machine of a test does.
_SHARES, _SHARES_OF_ALL = 1024, 200_000


@contextmanager
def groups() -> Iterator[Path | None]:
    """A folder for such groups; None where this process may make none: then all share as they do."""
    made = _ALL / f"hostile-{os.getpid()}"
    if os.geteuid() != 0 or not os.access(_ALL / "cpu.shares", os.W_OK) or made.exists():
        yield None
        return
    made.mkdir()
    (made / "cpu.shares").write_text(str(_SHARES_OF_ALL))
    try:
        yield made
    finally:
        eventually(lambda: _removed(made))  # who is left goes back to all others


def _removed(made: Path) -> bool:
    for found in (*(one for one in made.iterdir() if one.is_dir()), made):
        with suppress(OSError):
            for process in (found / "cgroup.procs").read_text().split():
                (_ALL / "cgroup.procs").write_text(process)
            found.rmdir()
    return not made.exists()


def group(folder: Path, name: str, weight: int = 100) -> Path:
    """The group of this name, made if need be."""
    found = folder / name
    with suppress(FileExistsError):
        found.mkdir()
        (found / "cpu.shares").write_text(str(weight * _SHARES // 100))
    return found


def weight_of(command: str) -> int:
    """What the unit of a command says; systemd's own where it says nothing."""
    unit = CHECKOUT / f"packaging/{command}.service"
    said = re.findall(r"^CPUWeight=(\d+)$", unit.read_text(), re.MULTILINE) if unit.exists() else []
    return int(said[0]) if said else 100


def move(folder: Path, name: str, server: Path) -> None:
    """Put a server of PostgreSQL, which runs in this folder, into a group."""
    own = group(folder, name) / "cgroup.procs"
    first = psutil.Process(int((server / "data" / "postmaster.pid").read_text().split()[0]))
    for process in (first, *first.children()):
        own.write_text(str(process.pid))


def join(folder: Path | None, name: str) -> None:
    """Put this process into a group."""
    if folder is not None:
        (group(folder, name) / "cgroup.procs").write_text("0")
