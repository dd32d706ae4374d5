"""File descriptors that this process may have: each connection takes one."""

from __future__ import annotations

import resource


def raise_limit(wanted: int) -> int:
    """Allow ourselves this many, within what the machine allows; returns how many it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
