"""The password: read from its file at each log-in, and only where nobody else can have touched it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import IO, NamedTuple

from ovirt_placement.config import EngineSettings
from ovirt_service.digests import digest_name
from ovirt_service.errors import UserError
from ovirt_service.files import open_regular

_ROOT = 0
_LONGEST = 4096


class Password(NamedTuple):
    """A password, and a mark that is another one once the password has been written again."""

    text: str
    mark: str


def read_password(settings: EngineSettings, environment: Mapping[str, str] = os.environ) -> Password:
    """Read the password from its file, else from the variable OVIRT_PASSWORD.

    Raises `UserError` if there is none, or if anybody may read or write the file but us, root, and a group
    that root lets read it.
    """
    path = settings.password_file
    if path is None:
        if password := environment.get("OVIRT_PASSWORD"):
            return Password(password, digest_name(password, 8))
        raise UserError("no password: set password_file under [engine], or the variable OVIRT_PASSWORD")
    try:
        with open(open_regular(path), encoding="utf-8") as file:
            mark = _mark(file, str(path))
            password = file.read(_LONGEST + 1).rstrip("\r\n")
    except OSError as error:
        raise UserError(f"{path}: cannot read the password: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: the password is not UTF-8 text") from None
    if len(password) > _LONGEST:
        raise UserError(f"{path}: is longer than {_LONGEST} characters, which no password is")
    if not password:
        raise UserError(f"{path}: is empty; write the password into it, alone on one line")
    return Password(password, mark)


def _mark(file: IO[str], path: str) -> str:
    """Distinguish the file from what stands there after somebody has written it, or even touched it."""
    found = os.fstat(file.fileno())
    if reason := refusal(found, os.geteuid(), path):
        raise UserError(reason)
    return f"{found.st_dev}:{found.st_ino}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def refusal(found: os.stat_result, uid: int, path: str) -> str | None:
    """Say why the user `uid` should not take a password from this file, and what to do; None if it may."""
    if not _is_closed(found):
        return f"{path}: others may read the password: chmod 600 {path}"
    if found.st_uid not in (uid, _ROOT):
        return (
            f"{path}: belongs to another user (uid {found.st_uid}), who may change the password:"
            f" run as that user, or {_take(found, uid, path)}"
        )
    return None


def _take(found: os.stat_result, uid: int, path: str) -> str:
    """Say how the user `uid` comes to own the file; services whose file root takes must still read it."""
    if uid == _ROOT and found.st_gid != _ROOT:
        return f"chown root {path} && chmod 640 {path}, which its group still reads"
    return f"chown {uid} {path}"


def _is_closed(found: os.stat_result) -> bool:
    """Whether nobody but its owner may touch the file.

    The one exception: root may let a group of services read it, since services of several users log in.
    """
    touchable = stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    shared = found.st_uid == _ROOT and found.st_gid != _ROOT
    return touchable == 0 or (shared and touchable == stat.S_IRGRP)
