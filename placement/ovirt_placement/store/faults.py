"""What is wrong with a store, and the command that helps: databases name the one at most."""

from __future__ import annotations

import getpass
import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import URL

RESTORE = "ovirt-placement store restore BACKUP"
INIT = "ovirt-placement store init"
#: What follows a store that cannot be used as it is.
BRING_BACK = f"bring it back by {RESTORE}, or begin with an empty one by {INIT}"

_DAMAGES = ("not a database", "malformed", "encrypted")
_REFUSALS = ("readonly", "unable to open", "disk I/O", "full", "ermission denied", "No space", "Read-only")
#: SQLite takes more than half of it for the smallest change, of which the first reader takes half.
_LEAST_FREE = 1 << 16


class Fault(NamedTuple):
    """What is wrong, and what to do about it, as two parts of a sentence."""

    what: str
    remedy: str


def is_damage(reason: str) -> bool:
    """Whether SQLite says that what stands in the file is no store any more."""
    return any(word in reason for word in _DAMAGES)


def of_server(url: URL, code: str, reason: str) -> Fault | None:
    """What keeps this user from a database of PostgreSQL, by its code and words; None if that is not known.

    Where it lets no client in, and where there is none, libpq has words alone. Source of the codes:
    PostgreSQL's manual, appendix A.
    """
    user, name = url.username or getpass.getuser(), url.database or url.username or getpass.getuser()
    known = (
        (
            ("28",),
            ("authentication failed", "pg_hba.conf", 'role "', "no password supplied"),
            "the server does not let this user in",
            "correct user and password in [store] url, or pg_hba.conf on the server",
        ),
        (
            ("3D",),
            ('database "',),
            "the server has no such database",
            f"createdb -O {user} {name} on the server makes it; or correct [store] url",
        ),
        (
            ("25006",),
            ("read-only", "in recovery", "hot standby"),
            "the server takes no changes, as a standby does",
            "in [store] url, name the server that does, or all of them with target_session_attrs=read-write",
        ),
        (
            ("53100",),
            ("No space left",),
            "no room is left on the server's disk",
            "make room there; df -h on the server shows where",
        ),
        (
            ("53300",),
            ("too many clients", "connection slots"),
            "the server has no connection left",
            "raise max_connections of the server",
        ),
        (
            ("42501",),
            (),
            "what is there belongs to another user",
            f"psql -d {name} -c 'REASSIGN OWNED BY OWNER TO \"{user}\"' by a superuser gives it to this one",
        ),
        (
            ("08", "57P"),
            (
                "onnection refused",
                "No such file",
                "timeout expired",
                "translate host",
                "closed the connection",
            ),
            "the server does not answer",
            "systemctl status postgresql on its machine shows whether it runs; [store] url says where it is",
        ),
    )
    return next(
        (
            Fault(what, remedy)
            for codes, words, what, remedy in known
            if (code and code.startswith(codes)) or (not code and any(word in reason for word in words))
        ),
        None,
    )


def obstacle(path: Path, reason: str = "") -> Fault | None:
    """What keeps this user from the file, by what SQLite said, and by file, folder and file system now.

    None if nothing is known to: it is locked, say. Without a reason, what keeps from writing.
    """
    if reason and not any(word in reason for word in _REFUSALS):
        return None
    try:
        return of_file_system(path) or _closed(path)
    except OSError:
        return None


def of_file_system(path: Path) -> Fault | None:
    """What keeps everybody from writing it. Raises `OSError` if its folder cannot be looked at."""
    place = os.statvfs(path.parent)
    if place.f_flag & os.ST_RDONLY:
        mounted = next(one for one in (path.parent, *path.parent.parents) if one.is_mount())
        return Fault("its file system is read-only", f"mount -o remount,rw {mounted}")
    if place.f_bavail * place.f_frsize < _LEAST_FREE:
        return Fault("no room is left on its file system", f"make room there; df -h {path.parent} shows it")
    return None


def _closed(path: Path) -> Fault | None:
    """Whether owner or mode keep this user from the file or its folder."""
    if not os.access(path.parent, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        return Fault(f"user {getpass.getuser()} may not write in {path.parent}", _let_in(path.parent))
    closed = [file for file in files_of(path) if not os.access(file, os.R_OK | os.W_OK, effective_ids=True)]
    if not closed:
        return None
    names = " ".join(map(str, closed))
    if all(file.lstat().st_uid == os.geteuid() for file in closed):
        return Fault("its file may not be written", f"chmod u+rw {names}")
    return Fault("its file belongs to another user than its folder", give_back(closed))


def files_of(path: Path) -> Iterator[Path]:
    """The files of the store that are there, and no link."""
    for ending in ("", "-wal", "-shm", "-journal", ".made"):
        file = path.with_name(path.name + ending)
        try:
            if stat.S_ISREG(file.lstat().st_mode):
                yield file
        except OSError:
            continue


def give_back(files: list[Path]) -> str:
    """How root lets the owner of their folder have files; what a link leads to is left alone."""
    return f"chown -h --reference={files[0].parent} {' '.join(map(str, files))}"


def _let_in(folder: Path) -> str:
    try:
        group = grp.getgrgid(folder.stat().st_gid).gr_name
    except (OSError, KeyError):
        group = "ovirt-placement"
    return f"usermod -aG {group} {getpass.getuser()}, and log in again; or run this as root"
