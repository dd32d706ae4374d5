"""A simulated engine in which time passes and much happens besides what a test is about."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

from ovirt_placement.model import Snapshot, Vm
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.core.settings import Settings
from ovirt_simulator.http.server import serve
from tests.proxy.running import eventually
from tests.repeating import repeating

#: How simulated time moves on; never faster than real time, in which the inventory lives.
STEP_SECONDS = 0.05
PATIENCE_SECONDS = 60.0


class LivingEngine:
    """An engine behind real HTTP; `busy` VMs start, move and stop all the time."""

    def __init__(self, state: Snapshot, settings: Settings, busy: tuple[str, ...], per_second: float) -> None:
        self.engine = Engine.from_snapshot(
            state, clock=datetime(2026, 1, 1, tzinfo=UTC), seed=1, settings=settings
        )
        self.server = serve(self.engine)
        self.elapsed = 0.0
        self._turns = itertools.cycle(busy)
        self._per_second = per_second
        self._owed = 0.0

    def vm(self, vm_id: str) -> Vm:
        """The VM as the engine would show it now."""
        found = self.engine.queries.state.vms.get(vm_id)
        assert found is not None
        return found

    def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until something holds."""
        eventually(holds, PATIENCE_SECONDS)

    def let_pass(self, seconds: float) -> None:
        began = self.elapsed
        self.until(lambda: self.elapsed >= began + seconds)

    def events_per_second(self) -> float:
        return len(self.engine.queries.events()) / self.elapsed

    def step(self) -> None:
        """Let a little time pass, in which what is busy logs its share of events."""
        before = len(self.engine.queries.events())
        for vm_id in itertools.islice(self._turns, max(0, round(self._owed))):
            self._stir(vm_id)
        self.engine.advance(STEP_SECONDS)
        self._owed += self._per_second * STEP_SECONDS - (len(self.engine.queries.events()) - before)
        self.elapsed += STEP_SECONDS

    def _stir(self, vm_id: str) -> None:
        """Start what is down, and move or stop what is up, in turns."""
        vm = self.vm(vm_id)
        try:
            if vm.status == "down":
                self.engine.vms.start(vm_id)
            elif vm.status == "up" and (len(vm_id) + int(self.elapsed)) % 2:
                self.engine.vms.migrate(vm_id)
            elif vm.status == "up":
                self.engine.vms.stop(vm_id)
        except Rejected:
            return  # it is under way already


@contextmanager
def living(
    state: Snapshot, settings: Settings, busy: tuple[str, ...] = (), per_second: float = 0.0
) -> Iterator[LivingEngine]:
    engine = LivingEngine(state, settings, busy, per_second)
    with closing(engine.server), repeating(engine.step, every=STEP_SECONDS):
        yield engine
