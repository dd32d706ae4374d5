"""Affinity groups: add, edit, remove, and the member commands that check next to nothing.

Source: reference/engine-api.md 4, rules.md 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from ovirt_placement.model import Rule

from .backend import Backend
from .entities import ADMIN, AffinityGroup, Caller

DISABLED = Rule(enabled=False, positive=False, enforcing=False)


class Members(StrEnum):
    """The member lists of an affinity group."""

    VMS = "vms"
    HOSTS = "hosts"
    VM_LABELS = "vm_labels"
    HOST_LABELS = "host_labels"


class AffinityGroupEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says of a group; None keeps what is there (for a new group: the default).

    The REST face resolves legacy `positive` and `enforcing`, and `enabled` without `positive`, into rules.
    """

    name: str | None = None
    description: str | None = None
    #: The engine rounds to 1e-7.
    priority: float | None = None
    cluster: str | None = None
    vms_rule: Rule | None = None
    hosts_rule: Rule | None = None
    vms: Sequence[str] | None = None
    hosts: Sequence[str] | None = None
    vm_labels: Sequence[str] | None = None
    host_labels: Sequence[str] | None = None


class AffinityCommands:
    """Commands on affinity groups; all raise `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def add(self, cluster_id: str, edit: AffinityGroupEdit, *, caller: Caller = ADMIN) -> AffinityGroup:
        """Add a group; whole groups are checked for conflicts with all groups of the cluster."""
        raise NotImplementedError

    def edit(self, group_id: str, edit: AffinityGroupEdit, *, caller: Caller = ADMIN) -> AffinityGroup:
        """Change a group; lists that the edit has replace the whole list."""
        raise NotImplementedError

    def remove(self, group_id: str, *, caller: Caller = ADMIN) -> None:
        raise NotImplementedError

    def add_member(self, group_id: str, members: Members, member_id: str, *, caller: Caller = ADMIN) -> None:
        """Add one member, unchecked but for its existence, as the engine's sub-collections do."""
        raise NotImplementedError

    def remove_member(
        self, group_id: str, members: Members, member_id: str, *, caller: Caller = ADMIN
    ) -> None:
        raise NotImplementedError
