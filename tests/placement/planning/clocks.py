"""A clock that goes on only when a test says so, and deadlines that a slow machine keeps as others do."""

import time
from dataclasses import dataclass

from ovirt_placement.planning.plan import Deadline
from tests.speed import seconds_here


def of_processor(seconds: float) -> Deadline:
    """As much of the processor's time as a fast machine has in these seconds."""
    until = time.process_time() + seconds_here(seconds)
    return Deadline(lambda: until - time.process_time())


@dataclass
class Clock:
    """A clock, and the time in which a process has a CPU.

    `busy` is the share of the time that the process gets; above 1 where its threads work side by side.
    """

    busy: float = 1.0
    now: float = 1000.0
    worked: float = 7.0

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds * self.busy
