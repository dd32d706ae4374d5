"""Affinity labels: add, rename, remove, and their members.

Source: reference/engine-api.md 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from .backend import Backend
from .entities import ADMIN, AffinityLabel, Caller


class LabelCommands:
    """Commands on affinity labels. Changing members is never checked for conflicts."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def add(
        self,
        name: str,
        *,
        vms: Sequence[str] = (),
        hosts: Sequence[str] = (),
        implicit: bool = False,
        caller: Caller = ADMIN,
    ) -> AffinityLabel:
        """Add a label; the name is unique over all labels (409)."""
        raise NotImplementedError

    def edit(
        self,
        label_id: str,
        *,
        name: str | None = None,
        vms: Sequence[str] | None = None,
        hosts: Sequence[str] | None = None,
        implicit: bool | None = None,
        caller: Caller = ADMIN,
    ) -> AffinityLabel:
        """Change what is not None; lists replace the whole list."""
        raise NotImplementedError

    def remove(self, label_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a label that has no members (409 else)."""
        raise NotImplementedError

    def add_vm(self, label_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        raise NotImplementedError

    def add_host(self, label_id: str, host_id: str, *, caller: Caller = ADMIN) -> None:
        raise NotImplementedError

    def remove_vm(self, label_id: str, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a VM out; raises `NotFound` when it is no member."""
        raise NotImplementedError

    def remove_host(self, label_id: str, host_id: str, *, caller: Caller = ADMIN) -> None:
        """Take a host out; raises `NotFound` when it is no member."""
        raise NotImplementedError
