"""How long work may take here: seconds of a fast machine, times how much longer this one takes."""

import time
from functools import cache

from ovirt_placement.planning.plan import Deadline

#: What a fast machine takes for a million additions, in CPU seconds.
_FAST_SECONDS = 0.05
_SAMPLES = 10


def seconds_here(on_a_fast_machine: float) -> float:
    """How long the same work may take on this machine."""
    return on_a_fast_machine * _times_slower()


def seconds_now(on_a_fast_machine: float) -> float:
    """How long the same may take, by the clock, while this machine is as busy as it is at this moment."""
    began = time.perf_counter()
    for _ in range(_SAMPLES):
        _million_additions()
    return on_a_fast_machine * max(1.0, (time.perf_counter() - began) / (_SAMPLES * _FAST_SECONDS))


@cache
def _times_slower() -> float:
    return max(1.0, min(_million_additions() for _ in range(3)) / _FAST_SECONDS)


def _million_additions() -> float:
    began = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - began


def of_processor(seconds: float) -> Deadline:
    """As much of the processor's time as a fast machine has in these seconds."""
    until = time.process_time() + seconds_here(seconds)
    return Deadline(lambda: until - time.process_time())
