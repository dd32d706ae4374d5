"""Writes down how the last cycle ended and what it left alone, for those who ask how the enforcer is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ovirt_enforcer.actions.migrate_vm import refusals
from ovirt_enforcer.service.look import Look
from ovirt_placement.store.cycles import Cycle, CycleStore, OpenBreaker, RememberedRefusal
from ovirt_service.errors import UserError

#: Of recorded refusals this many are written down.
_MOST_REFUSALS: Final = 200

_log = logging.getLogger(__name__)


class CycleLog:
    """The last cycle of this process while it leads."""

    def __init__(self, store: CycleStore, epoch: Callable[[], int]) -> None:
        self._store = store
        self._epoch = epoch
        #: What was written last.
        self._last: Cycle | None = None

    def ended(self, look: Look | None, error: Exception | None) -> None:
        """Write down a cycle that looked at the engine or failed, or the first one after one that failed.

        A store that does not answer is reported by the cycle itself.
        """
        last = self._last
        if look is None and error is None and (last is None or last.error is None):
            return
        try:
            cycle = self._cycle(look, error)
            self._store.record(cycle)
        except UserError as away:
            _log.debug("the cycle is not written down: %s", away)
        else:
            self._last = cycle

    def _cycle(self, look: Look | None, error: Exception | None) -> Cycle:
        said = None if error is None else str(error) or type(error).__name__
        if look is None:
            last = self._last
            kept = ((), ()) if last is None else (last.breakers, last.refusals)
            return Cycle(epoch=self._epoch(), error=said, breakers=kept[0], refusals=kept[1])
        breakers = look.gates.open_breakers(look.snapshot)
        seconds = look.parts.settings.refusal_seconds
        waiting = refusals.waiting(look.snapshot, look.history, seconds)
        left_out = [RememberedRefusal(vm, None, reason) for vm, reason in waiting.items()]
        left_out += [
            RememberedRefusal(vm, host, reason) for (vm, host), reason in look.backoff.left_out.items()
        ]
        return Cycle(
            epoch=self._epoch(),
            error=said,
            breakers=tuple(OpenBreaker(*one) for one in breakers.items()),
            refusals=tuple(left_out[:_MOST_REFUSALS]),
        )
