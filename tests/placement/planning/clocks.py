"""A clock, and the time in which a process has a CPU: both go on only when a test says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """`busy` is the share of the time that the process gets; above 1 where its threads work side by side."""

    busy: float = 1.0
    now: float = 1000.0
    worked: float = 7.0

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds * self.busy
