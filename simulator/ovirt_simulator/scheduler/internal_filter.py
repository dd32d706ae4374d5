"""What one of the engine's own filters is: a name, and which hosts it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ovirt_placement.model import Host, Snapshot, Vm

#: Reasons by host id: the hosts that a filter refuses; an empty one where the engine gives none.
Refusals = dict[str, str]
Filter = Callable[[Snapshot, Sequence[Vm], Sequence[Host]], Refusals]


class InternalFilter(msgspec.Struct, frozen=True):
    """A filter under the name that the engine's messages give it."""

    name: str
    refuse: Filter
