"""How cycles end: what is logged, counted, and shown at /healthz of it."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_enforcer.retry_state import RetryState
from ovirt_enforcer.service.health import Health, engine_is_away
from ovirt_enforcer.service.metrics import EnforcerMetrics


class Cycles:
    """Whether engine and store work, as the last cycle found that asked them."""

    def __init__(
        self,
        metrics: EnforcerMetrics,
        health: Health | None,
        clock: Callable[[], float],
        longest_pause: float,
    ) -> None:
        """After failures it waits at most `longest_pause` seconds."""
        self._metrics = metrics
        self._health = health
        self._clock = clock
        self._longest_pause = longest_pause
        self._retry_state = RetryState("engine and store")
        #: What they failed of when they were asked last; None if they answered.
        self.failure: Exception | None = None

    @property
    def pause(self) -> float:
        """Seconds from now until both may be asked again."""
        return self._retry_state.due - self._clock()

    def failed(self, error: Exception) -> None:
        """One has failed."""
        self.failure = error
        self._retry_state.fail(error, self._clock(), self._longest_pause)
        self._note("failed")

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

    def _note(self, result: str) -> None:
        self._metrics.cycles.labels(result).inc()
        if self._health is not None:
            self._health.cycled(self.failure)
