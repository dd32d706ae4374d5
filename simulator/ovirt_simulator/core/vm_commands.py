"""What one can do with a VM: start, stop, shut down, suspend, migrate, cancel its migration."""

from __future__ import annotations

from .backend import Backend
from .entities import ADMIN, Caller, Job


class VmCommands:
    """Commands on VMs. Each returns at once with its job; what it started shows over simulated time.

    All raise `Rejected` as the engine refuses. `start` and `migrate` wait for the external scheduler.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def start(self, vm_id: str, *, host_id: str | None = None, caller: Caller = ADMIN) -> Job:
        """Start a VM that is down or suspended, on this host only if one is named."""
        raise NotImplementedError

    def stop(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Power the VM off."""
        raise NotImplementedError

    def shutdown(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Ask the guest to shut down."""
        raise NotImplementedError

    def suspend(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Save the VM's memory and free its host."""
        raise NotImplementedError

    def migrate(
        self,
        vm_id: str,
        *,
        host_id: str | None = None,
        cluster_id: str | None = None,
        force: bool = False,
        closure: bool = False,
        caller: Caller = ADMIN,
    ) -> Job:
        """Begin a migration, to the host or where the scheduler says; `closure` takes hard peers along.

        `cluster_id` is what the action carried; it decides which refusal a target equal to the source gets.
        """
        raise NotImplementedError

    def cancel_migration(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Stop a migration that the source still holds."""
        raise NotImplementedError
