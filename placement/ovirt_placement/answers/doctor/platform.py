"""What can be wrong with the system: a socket, hardening, files that services cannot read."""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ovirt_placement.answers.doctor.finding import FoundProblem, problem
from ovirt_placement.answers.status import proxy
from ovirt_placement.config import Config
from ovirt_placement.config_file import DEFAULT_PATH
from ovirt_placement.engine.connection.log_ins import refusal
from ovirt_service.errors import UserError

# -- What can be wrong with the system: the socket of the proxy is not enabled.
#: Where the files of the system are.
ROOT = Path("/")
#: Links that `systemctl enable` makes.
_ENABLED = Path("etc/systemd/system")


def examine_socket(root: Path) -> Iterator[FoundProblem]:
    """Look whether a proxy that starts with the machine has the socket which stays open while it restarts."""
    wanted = root / _ENABLED
    service = wanted / "multi-user.target.wants" / "ovirt-scheduler-proxy.service"
    socket = wanted / "sockets.target.wants" / "ovirt-scheduler-proxy.socket"
    if service.is_symlink() and not socket.is_symlink():
        yield problem(
            "socket_not_enabled",
            "ovirt-scheduler-proxy.service is enabled and its socket is not: while it restarts, the"
            " engine's calls are refused, and VMs start without our units",
            "systemctl enable ovirt-scheduler-proxy.socket, then systemctl stop"
            " ovirt-scheduler-proxy.service, and systemctl start ovirt-scheduler-proxy.socket"
            " ovirt-scheduler-proxy.service",
        )


# -- What a hardened host refuses, or does not reach: plugins under fapolicyd, wheels in FIPS mode.
_DAEMON = "fapolicyd"
#: What is in force: all that stands in rules.d, once it is loaded.
_RULES = Path("etc/fapolicyd/compiled.rules")
_ALLOWED = re.compile(r"^allow\S* .*:.*\bdir=(/\S*)", re.MULTILINE)
#: Where the wheel of psycopg on PyPI has the OpenSSL that it brings.
_BROUGHT = "psycopg_binary.libs"


def examine_system(config: Config, root: Path) -> Iterator[FoundProblem]:
    """Look at the system whose files are below `root`. Raises `UserError` if we may not look at a file."""
    yield from examine_socket(root)
    yield from examine_fips(config, root, map(Path, sys.path))
    yield from examine_fapolicyd(config.engine.name, root)


def examine_fips(config: Config, root: Path, packages: Iterable[Path]) -> Iterator[FoundProblem]:
    """Look whether a PostgreSQL is reached by the system's OpenSSL, which alone knows of FIPS mode.

    Requests to the engine go by Python's, which is the system's; pycurl is loaded by the SDK, and sends none.
    """
    if _read(root / "proc/sys/crypto/fips_enabled").strip() != "1":
        return
    brought = any(any((each / _BROUGHT).glob("libcrypto*")) for each in packages)
    if brought and config.store.url.startswith("postgresql"):
        yield problem(
            "fips_not_reached",
            "the system is in FIPS mode, and psycopg-binary has an OpenSSL of its own, which is not",
            "use psycopg with the system's libpq: docs/hardened-hosts.md shows how",
        )


def examine_fapolicyd(engine: str, root: Path) -> Iterator[FoundProblem]:
    """Look whether the proxy's workers may read plugins that no package has installed."""
    if not _runs(root):
        return
    allowed = [Path(found) for found in _ALLOWED.findall(_read(root / _RULES))]
    for folder in proxy.others_plugins(engine):
        plugins = any((root / folder.relative_to("/")).glob("*.py"))
        if plugins and not any(folder.is_relative_to(each) for each in allowed):
            yield problem(
                "fapolicyd_refuses",
                f"fapolicyd is in force, and no rule of it lets the proxy read {folder}: plugins there"
                " that no package has installed do not load",
                "add the rule that docs/hardened-hosts.md shows to /etc/fapolicyd/rules.d, then"
                " fagenrules --load && systemctl restart fapolicyd",
            )


def _runs(root: Path) -> bool:
    return any(_read(comm).strip() == _DAEMON for comm in (root / "proc").glob("[0-9]*/comm"))


def _read(file: Path) -> str:
    """What is in a file; nothing if there is none, as of a process that has just ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; run doctor as root") from None


# -- Whether the services' users can read what root can: the configuration, the password, the CA.
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


def examine_services(config: Config) -> Iterator[FoundProblem]:
    """Ask for each user of a service that this machine has; of a configuration of one's own nothing is asked.

    Raises `UserError` if we may not look at a file.
    """
    if Path(config.source).parent != DEFAULT_PATH.parent:
        return
    users = _users()
    if users:
        yield from examine_files(tuple(_files(config)), users, _group())


def examine_files(files: Iterable[Found], users: Iterable[User], group: int | None) -> Iterator[FoundProblem]:
    """Ask by owner, groups and mode; `group` is the number of the services' group."""
    everyone = tuple(users)
    for file in files:
        for user in everyone:
            if hindrance := _hindrance(user, file, group):
                what, remedy = hindrance
                who = f"{SERVICES.get(user.name, 'a service')} (user {user.name})"
                yield problem("unreadable_by_service", f"{who}: {what}", remedy)


def _hindrance(user: User, file: Found, group: int | None) -> tuple[str, str] | None:
    for path, status in file.directories:
        if not _may(user, status, _ENTER):
            what = f"cannot read {file.path}, since it may not enter {path}"
            return what, f"chmod a+x {path}, or keep the file in {DEFAULT_PATH.parent}"
    share = f"chown root:{GROUP} {file.path} && chmod 640 {file.path}"
    status = file.status
    if not _may(user, status, _READ):
        for_group = status.st_gid == group and status.st_mode & stat.S_IRGRP
        join = f"usermod -aG {GROUP} {user.name}, and restart its service"
        return f"cannot read {file.path}", join if for_group and group not in user.gids else share
    reason = refusal(status, user.uid, str(file.path)) if file.is_password else None
    return None if reason is None else (f"refuses {reason}", share)


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
