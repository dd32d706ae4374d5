"""What one can do with a host: maintenance and activation; and what can happen to it."""

from __future__ import annotations

from .backend import Backend
from .entities import ADMIN, Caller, Job


class HostCommands:
    """Commands on hosts. All but `fail` and `recover`, which are no engine's, raise `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def deactivate(self, host_id: str, *, reason: str = "", caller: Caller = ADMIN) -> Job:
        """Put the host into maintenance: its VMs migrate away first."""
        raise NotImplementedError

    def activate(self, host_id: str, *, caller: Caller = ADMIN) -> Job:
        """Bring the host up from maintenance or trouble."""
        raise NotImplementedError

    def fail(self, host_id: str) -> None:
        """Let the host crash: it stops answering, is fenced, and its HA VMs restart elsewhere."""
        raise NotImplementedError

    def recover(self, host_id: str) -> None:
        """Let a crashed host come back; VMs that were not yet declared down are found running."""
        raise NotImplementedError
