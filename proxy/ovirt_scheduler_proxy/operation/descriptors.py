"""Makes sure of enough file descriptors, or manages with fewer connections."""

from __future__ import annotations

import logging

from ovirt_service.descriptors import raise_limit

from ..settings import Settings

log = logging.getLogger(__name__)

#: Logs, plugins' interpreters, what a reload opens in addition.
_OTHERS = 32
#: A connection, a handle and two outputs.
_FOR_A_WORKER = 4
#: Fewer connections than this are of no use.
_LEAST = 8


def connections(settings: Settings) -> int:
    """How many connections may stand, once as many descriptors as are wanted, or allowed, are there."""
    wanted = settings.server.most_connections
    workers = _FOR_A_WORKER * settings.workers.most * len(settings.plugins)
    limit = raise_limit(_OTHERS + workers + wanted)
    possible = min(wanted, max(_LEAST, limit - _OTHERS - workers))
    if possible < wanted:
        log.warning(
            "only %d file descriptors are allowed (LimitNOFILE, ulimit -n): %d connections at a time in place"
            " of %d",
            limit,
            possible,
            wanted,
        )
    return possible
