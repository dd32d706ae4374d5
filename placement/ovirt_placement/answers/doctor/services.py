"""Whether the services' users can read what root can: the configuration, the password, the CA."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.config import DEFAULT_PATH, Config
from ovirt_placement.engine.connection.password import refusal
from ovirt_service.errors import UserError

#: The users of the systemd units, and what runs as each.
SERVICES = {"ovirt-placement": "inventory and enforcer", "ovirt-scheduler-proxy": "the proxy's workers"}
#: The group that all of them are in.
GROUP = "ovirt-placement"
_READ, _ENTER = 4, 1


class User(NamedTuple):
    """Whom the kernel asks for: the groups are all that the user is in."""

    name: str
    uid: int
    gids: frozenset[int]


class Found(NamedTuple):
    """A file that services read, as it stands, and the directories that lead to it."""

    path: Path
    status: os.stat_result
    directories: tuple[tuple[Path, os.stat_result], ...]
    is_password: bool = False


def examine_services(config: Config) -> Iterator[Finding]:
    """Ask for each user of a service that this machine has; of a configuration of one's own nothing is asked.

    Raises `UserError` if we may not look at a file.
    """
    if Path(config.source).parent != DEFAULT_PATH.parent:
        return
    users = _users()
    if users:
        yield from examine_files(tuple(_files(config)), users, _group())


def examine_files(files: Iterable[Found], users: Iterable[User], group: int | None) -> Iterator[Finding]:
    """Ask by owner, groups and mode; `group` is the number of the services' group."""
    everyone = tuple(users)
    for file in files:
        for user in everyone:
            hindrance = (
                _closed_directory(user, file) or _unreadable(user, file, group) or _refused(user, file)
            )
            if hindrance:
                what, remedy = hindrance
                yield Finding(
                    kind="unreadable_by_service",
                    what=f"{SERVICES.get(user.name, 'a service')} (user {user.name}): {what}",
                    remedy=remedy,
                )


def _closed_directory(user: User, file: Found) -> tuple[str, str] | None:
    for path, status in file.directories:
        if not _may(user, status, _ENTER):
            return (
                f"cannot read {file.path}, since it may not enter {path}",
                f"chmod a+x {path}, or keep the file in {DEFAULT_PATH.parent}",
            )
    return None


def _unreadable(user: User, file: Found, group: int | None) -> tuple[str, str] | None:
    if _may(user, file.status, _READ):
        return None
    if file.status.st_gid == group and group not in user.gids and file.status.st_mode & stat.S_IRGRP:
        remedy = f"usermod -aG {GROUP} {user.name}, and restart its service"
    else:
        remedy = _share(file.path)
    return f"cannot read {file.path}", remedy


def _refused(user: User, file: Found) -> tuple[str, str] | None:
    reason = refusal(file.status, user.uid, str(file.path)) if file.is_password else None
    return None if reason is None else (f"refuses {reason}", _share(file.path))


def _share(path: Path) -> str:
    return f"chown root:{GROUP} {path} && chmod 640 {path}"


def _may(user: User, status: os.stat_result, right: int) -> bool:
    """Answer as the kernel does: the first of owner, group and others that fits decides."""
    if user.uid == status.st_uid:
        bits = status.st_mode >> 6
    elif status.st_gid in user.gids:
        bits = status.st_mode >> 3
    else:
        bits = status.st_mode
    return bool(bits & right)


def _files(config: Config) -> Iterator[Found]:
    """Look at what there is; the reader of a missing file reports it."""
    engine = config.engine
    for path in (Path(config.source), engine.password_file, engine.ca_file):
        if path is None:
            continue
        try:
            real = path.resolve()
            on_the_way = sorted({*path.absolute().parents, *real.parents})
            directories = tuple((each, each.stat()) for each in on_the_way)
            yield Found(path, path.stat(), directories, is_password=path == engine.password_file)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}; run doctor as root") from None


def _users() -> tuple[User, ...]:
    found = []
    for name in SERVICES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        found.append(User(name, entry.pw_uid, frozenset(os.getgrouplist(name, entry.pw_gid))))
    return tuple(found)


def _group() -> int | None:
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return None
