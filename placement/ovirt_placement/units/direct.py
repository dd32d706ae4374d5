"""Decides in the process of the unit, by a reading of the engine, where no inventory service runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.inventory.client import DEFAULT_DEADLINE_SECONDS, configured
from ovirt_placement.inventory.decision import Base, Decisions
from ovirt_placement.inventory.protocol import Decide, Decided
from ovirt_placement.units.decisions import Decider


class _ReadState:
    """The engine as this process reads it: a `Source` of decisions."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        with inventory.using(self._config) as opened:
            return opened.engine.base(max_age, until, vm)

    def as_of(self) -> float | None:
        with inventory.using(self._config) as opened:
            return opened.engine.as_of()

    def last(self) -> Base | None:
        with inventory.using(self._config) as opened:
            return opened.engine.last()


def decide(question: Decide, *, stays: bool) -> Decided:
    """Answer as the service would; a process that answers one question alone waits longer, and logs out."""
    with _closing(not stays):
        return _decider(stays)(question)


@contextmanager
def _closing(at_end: bool) -> Iterator[None]:
    try:
        yield
    finally:
        if at_end:
            inventory.close()


@cache
def _decider(stays: bool) -> Decider:
    config = configured()
    decisions = Decisions(_ReadState(config), config.inventory)
    return Decider(decisions) if stays else Decider(decisions, DEFAULT_DEADLINE_SECONDS)
