"""Root works in a folder that others may write with its owner's rights alone: a name there may be a link.

The folders of the services belong to their user, and their group may write there. So a command of root opens
what its caller named, becomes that user for good, and only then opens the store or what is published.
"""

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from ovirt_service.errors import EXIT_STATUS, UserError

_ROOT: Final = 0
#: As of the units of the services: the group writes what one of them has made.
_UMASK: Final = 0o007
#: Its members read the record of the proxy's decisions, as root did.
_READING_GROUP: Final = "ovirt-scheduler-proxy"
_MOST_LINKS: Final = 40
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

#: The user who ran this process, even when it has become another.
CALLER: Final = os.getuid()
#: What was opened before root became another user, by its path.
_held: dict[str, int] = {}


class Owner(NamedTuple):
    """Whom a folder belongs to."""

    uid: int
    gid: int


class _Step(NamedTuple):
    path: Path
    status: os.stat_result
    descriptor: int

    @property
    def is_roots_alone(self) -> bool:
        """Whether only root can put something else in the place of what is in it."""
        return self.status.st_uid == _ROOT and not self.is_shared

    @property
    def is_shared(self) -> bool:
        # With an access control list the bits of the group are the most that anybody named in it may do.
        return bool(self.status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def owner(folder: Path) -> Owner | None:
    """Whose rights root takes before it works in a folder; None where it is root's, or not there yet.

    The first folder on the way from / that is not root's decides: its owner can replace all below it. Raises
    `UserError` where others than root may decide whom that is, or write in a folder of root.
    """
    with ExitStack() as opened:
        last: _Step | None = None
        try:
            for step in _way(folder, opened):
                if last is not None and last.is_shared:
                    _check_below(last, step, folder)
                if step.status.st_uid != _ROOT:
                    return Owner(step.status.st_uid, step.status.st_gid)
                last = step
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UserError(f"{error.filename or folder}: {error.strerror}") from None
            return None  # a way that root cannot walk leads nowhere
        if last is not None and last.is_shared:
            raise UserError(
                f"{last.path}: belongs to root, and others may write there: give it to the user of the"
                f" services (chown ovirt-placement {last.path}), or close it (chmod go-w {last.path})"
            )
    return None


def _check_below(shared: _Step, step: _Step, folder: Path) -> None:
    """In a folder like /tmp everybody may make one that is then his own, but not replace one of root's."""
    if not shared.status.st_mode & stat.S_ISVTX or step.status.st_uid != _ROOT:
        raise UserError(
            f"{folder}: others than root may put another folder in its place, in {shared.path}: use one that"
            " only root can replace"
        )


def is_others(folder: Path) -> bool:
    """Whether this process is root, and may not work in a folder before it has become another user."""
    try:
        return _owner_of([folder]) is not None
    except UserError:
        return True


def is_below(folder: Path, folders: Iterable[Path]) -> bool:
    """Whether this process is root, and a folder belongs to those who own one of these."""
    with suppress(UserError):
        found = _owner_of([folder])
        return found is not None and found in map(owner, folders)
    return False


def become_owner(folders: Iterable[Path], files: Iterable[Path] = ()) -> None:
    """Let root go on, for good, as the owner of the first of these folders that is not root's.

    The files are opened before, for `opened`; one that cannot be is reported by who reads it. Users other
    than root stay who they are. Raises `UserError` as `owner`, and where the system does not allow it.
    """
    found = _owner_of(folders)
    if found is None:
        return
    for file in files:
        with suppress(OSError):
            _held[str(file)] = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    _become(found)


def answer_as_owner(folders: Iterable[Path], answer: Callable[[], bytes]) -> bytes:
    """What a child process answers that has become the owner of the folders; this one stays who it is.

    Raises `UserError` as `become_owner`, or as the child does.
    """
    found = _owner_of(folders)
    if found is None:
        return answer()
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        status = EXIT_STATUS
        try:
            with open(written, "wb") as answers:
                try:
                    _become(found)
                    answers.write(answer())
                    status = 0
                except UserError as error:
                    answers.write(str(error).encode())
        finally:
            os._exit(status)
    os.close(written)
    with open(read, "rb") as answers:
        said = answers.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise UserError(said.decode() or f"a process that was to read the store ended with {status}")
    return said


def opened(path: Path | str) -> int:
    """Open a file that a person has named, to read it: by the rights that the process began with."""
    held = _held.get(str(path))
    if held is None:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.set_blocking(held, True)
    with suppress(OSError):
        os.lseek(held, 0, os.SEEK_SET)
    return os.dup(held)


def is_held(path: Path | str) -> bool:
    return str(path) in _held


def create(path: Path) -> int:
    """Make a file where a person has said, and open it to write; only its owner may read it.

    No link is followed that others than root can have put there. Raises `OSError`, also if there is something
    already.
    """
    with _reached(path) as (name, folder):
        return os.open(name, _NEW, 0o600, dir_fd=folder)


def remove(path: Path) -> None:
    """Take away what `create` has made there, likewise. Raises `OSError`."""
    with _reached(path) as (name, folder):
        os.unlink(name, dir_fd=folder)


@contextmanager
def _reached(path: Path) -> Iterator[tuple[Path | str, int | None]]:
    """A file as it is named from a folder, where root has opened that."""
    with ExitStack() as stack:
        if os.geteuid() != _ROOT:
            yield path, None
        else:
            *_, folder = _way(path.parent, stack)
            yield path.name, folder.descriptor


def _owner_of(folders: Iterable[Path]) -> Owner | None:
    if os.geteuid() != _ROOT:
        return None
    return next((found for found in map(owner, folders) if found is not None), None)


def _become(found: Owner) -> None:
    groups: list[int] = []
    gid, variables = found.gid, {"HOME": "/"}
    with suppress(KeyError):
        user = pwd.getpwuid(found.uid)
        gid, groups = user.pw_gid, os.getgrouplist(user.pw_name, user.pw_gid)
        with suppress(KeyError):
            groups.append(grp.getgrnam(_READING_GROUP).gr_gid)
        # libpq, for one, stops where it may not read what belongs to root.
        variables = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
    try:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(found.uid, found.uid, found.uid)
    except OSError as error:
        raise UserError(
            f"cannot become user {found.uid}, who owns the services' folders: {error.strerror};"
            " run this as that user"
        ) from None
    os.umask(_UMASK)
    os.environ.update(variables)


def _way(path: Path, opened: ExitStack) -> Iterator[_Step]:
    """Each folder from / to this one, as they are walked: no name is looked up a second time.

    Raises `OSError`, also for a link that others than root can have put there.
    """
    step = _opened(Path("/"), "/", None, opened)
    yield step
    names, links = list(reversed(path.absolute().parts[1:])), 0
    while names:
        name = names.pop()
        found = os.stat(name, dir_fd=step.descriptor, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if not step.is_roots_alone or links > _MOST_LINKS:
                raise OSError(
                    errno.ELOOP, "a link that others than root can have put there", str(step.path / name)
                )
            target = Path(os.readlink(name, dir_fd=step.descriptor))
            names.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))
            if target.is_absolute():
                step = _opened(Path("/"), "/", None, opened)
            continue
        step = _opened(step.path / name, name, step.descriptor, opened)
        yield step


def _opened(path: Path, name: str, folder: int | None, opened: ExitStack) -> _Step:
    descriptor = os.open(name, _FOLDER, dir_fd=folder)
    opened.callback(os.close, descriptor)
    return _Step(path, os.fstat(descriptor), descriptor)
