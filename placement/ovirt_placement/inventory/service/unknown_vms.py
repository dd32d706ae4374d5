"""VMs that readers ask for and nobody knows: looked for in the engine, but seldom.

Any client of the proxy can ask about VMs that do not exist, as often as it likes. That must cost the
engine, and those who ask about VMs that do, next to nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from types import MappingProxyType

#: This many are looked for at once, by one search; the others with the next.
MOST_AT_ONCE = 80
#: A VM that the engine did not have is not looked for again so soon.
REMEMBERED_SECONDS = 2.0
#: More than this many wait for their turn without success: somebody makes them up.
_MOST_WAITING = 1_000
#: What the engine's ids, and those of a state file, are made of. Anything else would mean more in a search.
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")

_NEVER = float("-inf")


class UnknownVms:
    """Who is to be looked for, and when who was; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[str, None] = {}
        #: Those that are being looked for.
        self._taken: tuple[str, ...] = ()
        self._looked: Mapping[str, float] = MappingProxyType({})

    def want(self, vm: str) -> None:
        """Have a VM looked for that is not known."""
        with self._lock:
            if vm not in self._taken:
                self._wanted[vm] = None

    def take(self) -> tuple[str, ...]:
        """Take those that are to be looked for now, the longest wanted first."""
        with self._lock:
            self._taken = tuple(self._wanted)[:MOST_AT_ONCE]
            for vm in self._taken:
                del self._wanted[vm]
            return self._taken

    def looked(self, vms: tuple[str, ...], now: float) -> None:
        """Remember that these were looked for, and that what was found is known."""
        before = self._looked
        recent = {vm: at for vm, at in before.items() if at > now - REMEMBERED_SECONDS}
        self._looked = {**recent, **dict.fromkeys(vms, now)}
        with self._lock:
            self._taken = ()

    def is_known(self, vm: str, not_before: float) -> bool:
        """Whether the VM was looked for at about this moment, or is none to look for."""
        if _ID.fullmatch(vm) is None or len(self._wanted) >= _MOST_WAITING:
            return True
        return self._looked.get(vm, _NEVER) > not_before - REMEMBERED_SECONDS
