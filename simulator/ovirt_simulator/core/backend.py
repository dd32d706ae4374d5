"""What all commands and queries share: the lock, the database, the clock, the audit log, the dice."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable
from datetime import datetime

from ovirt_placement.model import Snapshot

from .audit_log import Action, AuditLog, Jobs, Timeline
from .faults import Faults
from .rejections import Message
from .settings import Settings
from .state import State


class Backend:
    """The shared parts of one engine.

    `lock` guards everything else here. It is never held while the external scheduler is asked, so that what
    the scheduler's plugins read from the engine meanwhile is answered.
    """

    def __init__(
        self, *, clock: datetime, seed: int, settings: Settings, background: Callable[[Action], object]
    ) -> None:
        self.lock = threading.RLock()
        self.settings = settings
        self.random = random.Random(seed)  # noqa: S311 - dice, not secrets
        self.seed = seed
        self.state = State()
        self.timeline = Timeline(clock)
        self.audit_log = AuditLog(self.timeline, self.random, settings)
        self.jobs = Jobs(self.timeline, self.random)
        self.faults = Faults()
        #: The message that a command meets whose VM another command holds, by VM id.
        self.vm_locks: dict[str, Message] = {}
        #: Ids of hosts that have crashed, whether the engine knows it yet or not.
        self.failed_hosts: set[str] = set()
        self._background = background
        self._snapshot: tuple[int, Snapshot] | None = None

    @property
    def now(self) -> datetime:
        return self.timeline.now

    def new_id(self) -> str:
        """Draw an id for something new; the same in every run with the same seed and commands."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def live_snapshot(self) -> Snapshot:
        """Give the present state as the scheduler sees it; the same object until something changes."""
        if self._snapshot is None or self._snapshot[0] != self.state.revision:
            self._snapshot = self.state.revision, self.state.live_snapshot()
        return self._snapshot[1]

    def after(self, seconds: float, action: Action) -> None:
        """Run the action under the lock when its time has come."""

        def locked() -> None:
            with self.lock:
                action()

        with self.lock:
            self.timeline.after(seconds, locked)

    def after_event(self, action: Action) -> None:
        """Change the state that the event just logged speaks of: at once, or a little later."""
        lag = self.random.uniform(0.0, self.settings.state_lag_seconds)
        if lag > 0:
            self.after(lag, action)
        else:
            action()

    def every(self, seconds: float, action: Action) -> None:
        """Run the action again and again, as `unlocked` does."""

        def again() -> None:
            action()
            self.unlocked(seconds, again)

        self.unlocked(seconds, again)

    def unlocked(self, seconds: float, action: Action) -> None:
        """Run the action without the lock when its time has come: it asks the external scheduler."""

        def handed_over() -> None:
            self._background(action)

        with self.lock:
            self.timeline.after(seconds, handed_over)
