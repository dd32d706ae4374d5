"""Opens what others give us: regular files alone, up to a size, and TOML with what is wrong in one line.

And makes what the processes of a user have in memory for one another: a folder, and locks in it.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ovirt_service import identity
from ovirt_service.errors import UserError

_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MIB = 2**20
#: A long configuration has some kilobytes.
_MOST_CONFIGURATION_MIB = 4


def open_regular(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor.

    Raises `OSError`, also for a directory, a FIFO, a socket or a device.
    """
    is_held = flags == os.O_RDONLY and identity.is_held(path)
    file = identity.opened(path) if is_held else os.open(path, flags | _FLAGS)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def make_as_folder(file: Path) -> None:
    """Make an empty file that owner and group of its folder may read and write as they may write there.

    A link in its place is not followed. Raises `OSError`, also if there is something already.
    """
    folder = file.parent.stat()
    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):  # who is not in that group keeps his own
            os.fchown(made, -1, folder.st_gid)
        os.fchmod(made, folder.st_mode & 0o660)
    finally:
        os.close(made)


def read_bounded(path: Path, most_mib: int) -> bytes:
    """All that a file holds. Raises `OSError`, and `UserError` if it holds more than this many MiB."""
    with open(identity.opened(path), "rb") as file:
        return read_stream(file, str(path), most_mib)


def read_named(path: Path, what: str, most_mib: int) -> bytes:
    """All that a file holds which a person has named. Raises `UserError` that says what cannot be read."""
    try:
        return read_bounded(path, most_mib)
    except OSError as error:
        raise UserError(f"{path}: cannot read the {what}: {error.strerror}") from None


def read_stream(file: BinaryIO, name: str, most_mib: int) -> bytes:
    """As `read_bounded`, of what is open already."""
    content = file.read(most_mib * _MIB + 1)
    if len(content) > most_mib * _MIB:
        raise UserError(f"{name}: holds more than {most_mib} MiB")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Return what the file holds.

    Raises `UserError` if it cannot be read, is not TOML, or if everybody may change it: what runs by it
    would be in anybody's hands.
    """
    try:
        with open(identity.opened(path), "rb") as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                raise UserError(f"{path}: everybody may change the configuration: chmod o-w {path}")
            return tomllib.loads(read_stream(file, str(path), _MOST_CONFIGURATION_MIB).decode())
    except OSError as error:
        raise UserError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: not TOML: nested too deeply") from None


def memory_folder(purpose: str) -> Path:
    """Where processes of this user keep something until the machine stops; made if it is not there.

    It is the user's alone; where another user stands in its place, nothing can be opened in what is returned.
    """
    memory = Path("/dev/shm")  # noqa: S108 - its owner is looked at
    with contextlib.suppress(OSError):  # also of a system without any folder for temporary files
        base = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
        place = base / f"ovirt-placement-{os.getuid()}-{purpose}"
        place.mkdir(mode=0o700, exist_ok=True)
        found = os.lstat(place)
        others = stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not others:
            return place
    return Path(os.devnull)


#: How often those who wait for a lock look whether they get it.
_POLL_SECONDS = 0.01


@contextlib.contextmanager
def one_locked(files: Sequence[Path], patience_seconds: float) -> Iterator[None]:
    """Hold the lock of one of these files, if any, which are made, while no other process holds that.

    After this time, or where none can be opened, it goes on without: one that is stopped stops no other.
    """
    with contextlib.ExitStack() as opened:
        until = time.monotonic() + patience_seconds
        with contextlib.suppress(OSError):
            locks = [os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | _FLAGS, 0o600) for file in files]
            for lock in locks:
                opened.callback(os.close, lock)
            while locks and not any(map(_is_locked, locks)) and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)
        yield


@contextlib.contextmanager
def held_alone(path: Path | str, busy: str) -> Iterator[None]:
    """Hold the lock of a file or folder. Raises `UserError` in these words if another process holds it.

    Where it cannot be opened, or its file system has no locks, it goes on without.
    """
    with contextlib.ExitStack() as opened:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | _FLAGS)
            opened.callback(os.close, descriptor)
            if not _is_locked(descriptor):
                raise UserError(busy)
        yield


def _is_locked(file: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


# Digests name things, of which two must only not fall together: they are no protection. FIPS mode refuses
# BLAKE2 whatever it is for, so a digest is the beginning of a SHA-256.


def digest(text: str, size: int) -> bytes:
    """Digest a text, unpaired surrogates included, into this many bytes: 32 at most."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]


def digest_name(text: str, size: int) -> str:
    """Digest a text into a part of a file's name, of two digits a byte."""
    return digest(text, size).hex()
