"""Records the results of migrations, logs them, and notifies the watchers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from ovirt_enforcer.gates.gate import title
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.store.intents import ImpossibleTransition, Intent, Store

_log = logging.getLogger(__name__)

_NOTHING: Final = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())


class Transitions:
    """The transitions of intents, in the store and in the log."""

    def __init__(self, store: Store, ended: Callable[[Intent], None]) -> None:
        """`ended` is called with each migration whose end is known."""
        self.store = store
        self._ended = ended
        #: For names alone.
        self._latest = _NOTHING

    def look(self, snapshot: Snapshot) -> None:
        """Learn the names of VMs and hosts."""
        self._latest = snapshot

    def record(
        self, intents: Iterable[Intent], transition: Callable[..., Intent], *why: str | None
    ) -> tuple[Intent, ...]:
        """Record a transition of each intent; where somebody else has done so already, theirs stands."""
        recorded = []
        for intent in intents:
            try:
                after = transition(intent.id, *why)
            except ImpossibleTransition as overtaken:
                self.warn(intent, str(overtaken))
                continue
            _log.info("%s: %s", self._title(after), ": ".join(filter(None, (after.state, after.reason))))
            recorded.append(after)
            if not after.open:
                self._ended(after)
        return tuple(recorded)

    def end(self, intent: Intent, transition: Callable[..., Intent], *why: str | None) -> Intent | None:
        """Record the end of one migration; None where somebody else has done so."""
        return next(iter(self.record((intent,), transition, *why)), None)

    def warn(self, intent: Intent, text: str) -> None:
        """Say of a migration what should not be."""
        _log.warning("%s: %s", self._title(intent), text)

    def _title(self, intent: Intent) -> str:
        vm, host = vm_name(intent.vm, self._latest), host_name(intent.target, self._latest)
        return f"{title(intent.kind, vm, host)} ({intent.correlation_id})"
