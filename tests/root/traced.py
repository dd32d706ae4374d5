"""What a process did by the rights of root, as strace saw it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: strace writes a file for each process; what is traced changes names or files, rights, or the processes.
OPTIONS = ("-ff", "-y", "-s", "1000", "--seccomp-bpf", "-e", "signal=none", "-e")
TRACED = "trace=%file,%creds,%process,bind,fchmod,fchown,ftruncate,fsetxattr,fallocate"

_CALL = re.compile(r"(?P<name>\w+)\((?P<given>.*)\) += (?P<result>-?\d+|\?)")
_WRITES = re.compile(
    r"mkdir|mknod|unlink|rmdir|rename|link(?!.*readlink)|symlink|chmod|chown|truncate|utime|setxattr|bind|creat"
    r"|fallocate"
)
_OPENS = re.compile(r"^open")
_WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
_READ_ONLY = {"readlink", "readlinkat"}


class Call(NamedTuple):
    """One system call of a process of root."""

    text: str
    name: str
    given: str

    @property
    def writes(self) -> bool:
        if _OPENS.match(self.name):
            return bool(_WRITING.search(self.given))
        return self.name not in _READ_ONLY and bool(_WRITES.search(self.name))

    @property
    def opens(self) -> bool:
        return bool(_OPENS.match(self.name)) and "O_PATH" not in self.given


def calls_of_root(traces: Path, pid: int) -> Iterator[Call]:
    """The calls that this process and its children made while their effective user was root."""
    yield from _calls(traces, pid, is_root=True)


def _calls(traces: Path, pid: int, *, is_root: bool) -> Iterator[Call]:
    for line in traces.with_name(f"{traces.name}.{pid}").read_text().splitlines():
        found = _CALL.match(line)
        if found is None:
            continue
        name, result = found["name"], found["result"]
        if is_root:
            yield Call(line, name, found["given"])
        if name in ("setresuid", "setreuid", "setuid") and result == "0":
            # The last is the effective one but for setresuid, whose last is the one that may be taken again.
            users = [int(one) for one in found["given"].split(", ")]
            effective = users[1] if name != "setuid" else users[0]
            is_root = 0 in (*users, effective) if name == "setresuid" else effective == 0
        if name in ("fork", "vfork", "clone", "clone3") and int(result) > 0:
            yield from _calls(traces, int(result), is_root=is_root)
