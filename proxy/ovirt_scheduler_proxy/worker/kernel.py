"""What a worker process needs of Linux: output caught in memory, orphans adopted, memory bounded; frames.

By frames the proxy and a worker speak: a frame is a mark, two lengths, a JSON head and a body. An answer
bears the mark of its question: what a unit writes into the connection by itself is no answer.
"""

import contextlib
import ctypes
import fcntl
import io
import os
import resource
import signal
import struct

#: A weight for each of 50,000 hosts can be printed in this; a flood stops here.
STDOUT_LIMIT = 4 << 20
STDERR_LIMIT = 256 << 10

#: As much of what a unit printed goes to the log.
LOGGED = 32 << 10


def create_memory(name: str, limit: int) -> int:
    """An anonymous file that cannot grow past `limit`: what writes on gets an error and costs no memory."""
    memory = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, limit)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return memory


def read_memory(memory: int) -> str:
    """What was written so far, even by a worker that died; a unit may have put the position past the end."""
    written = min(os.lseek(memory, 0, os.SEEK_CUR), os.fstat(memory).st_size)
    return os.pread(memory, written, 0).decode(errors="replace") if written else ""


class Capture:
    """One of the descriptors 1 and 2, led into memory.

    The position in the memory is shared with every process that inherits the descriptor, so that it shows
    how much all of them wrote.
    """

    def __init__(self, memory: int, number: int, limit: int) -> None:
        self._memory = memory
        self._number = number
        self._limit = limit
        self.stream = self._open()

    def repair(self) -> None:
        """Make good what the last unit closed or led elsewhere."""
        os.dup2(self._memory, self._number)
        if not self._usable:
            self.stream = self._open()

    def begin(self) -> None:
        """Start afresh."""
        os.lseek(self._memory, 0, os.SEEK_SET)

    def end(self) -> str:
        """Return what was written since `begin`."""
        if self._usable:
            # Where the memory is full or the descriptor closed, what is lost could not be an answer anyway.
            with contextlib.suppress(OSError):
                self.stream.flush()
        return read_memory(self._memory)

    @property
    def _usable(self) -> bool:
        """Whether the unit has left our stream open, and its buffer in it."""
        try:
            return not self.stream.closed
        except ValueError:
            return False

    @property
    def full(self) -> bool:
        return os.lseek(self._memory, 0, os.SEEK_CUR) >= self._limit

    def _open(self) -> io.TextIOWrapper:
        os.dup2(self._memory, self._number)
        return open(self._number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


#: Sent to a zygote by the kernel when the proxy has ended, or by a proxy that waits no longer.
PROXY_ENDED = signal.SIGUSR1

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none escapes."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Get a signal as soon as the thread of the parent ends that has started us; at once if it has ended."""
    _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def children() -> list[int]:
    """The living and the unreaped children of the calling process."""
    found: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children", encoding="ascii") as listing:
                found.extend(map(int, listing.read().split()))
        except FileNotFoundError:
            continue  # the thread has ended
    return found


def has_children() -> bool:
    """Whether any child is left, without reaping one that the unit's own code may still want to wait for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def threads() -> int:
    """The threads of the calling process, those of C libraries too."""
    return len(os.listdir("/proc/self/task"))


def limit_memory(extra: int) -> None:
    """Let the calling process take at most `extra` bytes of private memory beyond what it has now."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        now = next((int(line.split()[1]) << 10 for line in status if line.startswith("VmData:")), 0)
    resource.setrlimit(resource.RLIMIT_DATA, (now + extra,) * 2)


def shares_badly(but: int) -> bool:
    """Whether the process has what does not survive a fork: threads, children, sockets, event queues.

    `but` is a descriptor that does not count.
    """
    if threads() > 1 or has_children():
        return True
    others = {int(number) for number in os.listdir("/proc/self/fd")} - {0, 1, 2, but}
    return any(map(_is_connection, others))


def _is_connection(number: int) -> bool:
    try:
        target = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return False
    return target.startswith(("socket:", "anon_inode:"))


PREFIX = struct.Struct(">III")

#: No honest frame is longer: 10,000 hosts with weights and a full page of prints stay far below.
LONGEST = 64 << 20

#: A frame split into its mark, its head and its body.
Frame = tuple[int, bytes, bytes]


class BadFrame(Exception):
    """The other side wrote something that is no frame: what a unit printed into the wrong descriptor, say."""


def pack(head: bytes, body: bytes = b"", mark: int = 0) -> bytes:
    return PREFIX.pack(mark, len(head), len(body)) + head + body


def marked(frame: bytes, mark: int) -> bytes:
    """A packed frame with another mark."""
    return mark.to_bytes(4, "big") + frame[4:]


def receive(stream: io.BufferedReader) -> Frame | None:
    """Wait for the next whole frame; None when the other side has closed."""
    prefix = stream.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    mark, head, body = PREFIX.unpack(prefix)
    return mark, stream.read(head), stream.read(body)


def unpacked(received: bytearray) -> Frame | None:
    """The frame, once all of it was received.

    A side sends its next frame only after the other has answered, so nothing follows a frame.
    """
    if len(received) < PREFIX.size:
        return None
    mark, head, body = PREFIX.unpack_from(received)
    start = PREFIX.size + head
    if start + body > LONGEST or len(received) > start + body:
        raise BadFrame(f"{len(received)} bytes that are no frame")
    if len(received) < start + body:
        return None
    return mark, bytes(received[PREFIX.size : start]), bytes(received[start:])
