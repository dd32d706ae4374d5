"""The service's connections to the engine, one for each of its loops, which end together and soon."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from prometheus_client import Counter

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.inventory.service.metrics import CountedConnection
from ovirt_service.threads import BackgroundThread

#: For log-outs, all at once; an engine that hangs forgets the sessions by itself.
_LAST_SECONDS = 1.5


class Connections(NamedTuple):
    #: Follows the events.
    feed: EngineConnection
    #: Makes the larger readings.
    bulk: EngineConnection
    #: Reads details of VMs, which take long.
    slow: EngineConnection


@contextmanager
def connections(settings: EngineSettings, requests: Counter) -> Iterator[Connections]:
    """Give the connections, and log out at the end, unless the engine keeps us waiting."""
    made = Connections(*(CountedConnection(settings, requests) for _ in Connections._fields))
    try:
        yield made
    finally:
        until = time.monotonic() + _LAST_SECONDS
        for connection in made:
            connection.end()
        closing = [BackgroundThread(target=connection.close) for connection in made]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))
