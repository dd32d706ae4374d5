"""How cycles end: whether engine and store work, as health, metrics and the store show it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from ovirt_enforcer.log import RetryState
from ovirt_enforcer.service.metrics import EnforcerMetrics, Health, engine_is_away
from ovirt_enforcer.service.reading import Reading
from ovirt_placement.store.enforcer.leader import Cycle, CycleStore, OpenBreaker, RememberedRefusal
from ovirt_service.errors import UserError

#: Of recorded refusals this many are written down.
_MOST_REFUSALS: Final = 200
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Cycles:
    """Whether engine and store work, as the last cycle found that asked them."""

    store: CycleStore
    metrics: EnforcerMetrics
    health: Health | None
    clock: Callable[[], float]
    #: After failures it waits so long at the most.
    longest_pause: float
    epoch: Callable[[], int]
    #: What they failed of when they were asked last; None if they answered.
    failure: Exception | None = field(default=None, init=False)
    #: What was written down last.
    _written: Cycle | None = field(default=None, init=False)
    _retry_state: RetryState = field(default_factory=lambda: RetryState("engine and store"), init=False)

    @property
    def pause(self) -> float:
        """Seconds from now until both may be asked again."""
        return self._retry_state.due - self.clock()

    def failed(self, error: Exception) -> None:
        """One has failed."""
        self.failure = error
        self._retry_state.fail(error, self.clock(), self.longest_pause)
        self._note("failed")
        self.write_down(None)

    def ended(self, *, engine_asked: bool) -> None:
        """One has ended well. If the engine was away, it is so until a cycle has asked it."""
        if engine_asked or not engine_is_away(self.failure):
            self.failure = None
            self._retry_state.recover()
        self._note("ok")

    def followed(self) -> None:
        """One has ended well in which another leads: whether the engine is away is found by that one."""
        if engine_is_away(self.failure):
            self._retry_state.forget_failure()
        self.ended(engine_asked=True)

    def write_down(self, reading: Reading | None, waiting: Collection[str] = ()) -> None:
        """Write down a cycle that looked at the engine or failed, or the first one after one that failed.

        Of VMs that are left alone those in `waiting` are named: the others are to go nowhere.
        A store that does not answer is reported by the cycle itself.
        """
        last = self._written
        if reading is None and self.failure is None and (last is None or last.error is None):
            return
        try:
            cycle = self._cycle(reading, waiting)
            self.store.record(cycle)
        except UserError as away:
            _log.debug("the cycle is not written down: %s", away)
        else:
            self._written = cycle

    def _note(self, result: str) -> None:
        self.metrics.cycles.labels(result).inc()
        if self.health is not None:
            self.health.cycled(self.failure)

    def _cycle(self, reading: Reading | None, waiting: Collection[str]) -> Cycle:
        error = None if self.failure is None else str(self.failure) or type(self.failure).__name__
        if reading is None:
            last = self._written or Cycle(epoch=0, error=None)
            return Cycle(epoch=self.epoch(), error=error, breakers=last.breakers, refusals=last.refusals)
        backoff, breakers = reading.backoff, reading.gates.open_breakers(reading.snapshot)
        left_out = [RememberedRefusal(vm, None, one.reason) for vm, one in backoff.refused_vms.items()]
        left_out += [RememberedRefusal(vm, host, why) for (vm, host), why in backoff.left_out.items()]
        return Cycle(
            epoch=self.epoch(),
            error=error,
            breakers=tuple(OpenBreaker(*one) for one in breakers.items()),
            refusals=tuple([one for one in left_out if one.vm in waiting][:_MOST_REFUSALS]),
        )
