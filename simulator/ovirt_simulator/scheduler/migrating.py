"""What the engine's own loops need of the migrate command, and which clusters they leave alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ..core.entities import Host, Job
from ..core.state import State


class MigrateBySystem(Protocol):
    """Begins a migration that the engine itself wants. Raises `Rejected`."""

    def __call__(self, vm_id: str, reason: str, *, hosts: Collection[str] = ()) -> Job: ...


def is_migrating(state: State, host: Host) -> bool:
    """Return whether a VM is on its way from or to the host."""
    there = (*state.vms_on(host.id), *state.incoming(host.id))
    return any(vm.status == "migrating" for vm in there)
