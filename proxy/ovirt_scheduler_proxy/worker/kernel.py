"""What only the Linux kernel can do for us: adopt orphans, die with the parent, bound memory."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import threading

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none escapes."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int) -> None:
    """Be killed as soon as the parent ends; at once if it has ended already."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def be_notified_of_end(parent: int, number: int) -> None:
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
    resource.setrlimit(resource.RLIMIT_DATA, (_private_memory() + extra,) * 2)


def shares_badly() -> bool:
    """Whether the process has what does not survive a fork: threads, children, sockets, event queues."""
    if threading.active_count() > 1 or threads() > 1 or has_children():
        return True
    return any(_is_connection(number) for number in os.listdir("/proc/self/fd") if int(number) > 2)


def _is_connection(number: str) -> bool:
    try:
        target = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return False
    return target.startswith(("socket:", "anon_inode:"))


def _private_memory() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) << 10
    return 0
