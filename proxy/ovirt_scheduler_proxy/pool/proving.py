"""Tries whether a pool's workers answer, before anything depends on them."""

from __future__ import annotations

import asyncio

from ..worker.frames import pack
from .jobs import Job, run
from .outcome import Outcome
from .pool import Pool

#: A call of a worker itself: see `worker.serving.PROBE`.
_REQUEST = pack(b'{"module": "", "unit": "", "kind": "probe"}', b"[[], {}]")


async def answers(pool: Pool, seconds: float) -> bool:
    """Whether a worker of the pool answers within this many seconds."""
    loop = asyncio.get_running_loop()
    reported: asyncio.Future[Outcome] = loop.create_future()

    def report(outcomes: list[Outcome]) -> None:
        if not reported.done():
            reported.set_result(outcomes[0])

    run([Job("probe", pool, _REQUEST)], loop.time() + seconds, report)
    return (await reported).failure is None
