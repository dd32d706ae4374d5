"""Remembers of which affinity groups and labels VMs are members, and which they lost with their cluster.

The engine forgets that without a word: only an earlier record shows it afterwards.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec

from ovirt_placement.store.sql.access import StoreAccess
from ovirt_placement.store.sql.schema import lost_memberships, memberships


class MembershipKind(StrEnum):
    """What a VM is a member of."""

    GROUP = "group"
    LABEL = "label"


class Membership(NamedTuple):
    kind: MembershipKind
    id: str
    name: str


class Seen(msgspec.Struct, frozen=True):
    """A VM's memberships, of which there is at least one, and the cluster in which it had them."""

    vm: str
    cluster: str
    cluster_name: str
    member_of: tuple[Membership, ...]


class LostMembership(msgspec.Struct, frozen=True):
    """One membership that a VM had in a cluster which it left; names as they were then."""

    vm: str
    vm_name: str
    cluster: str
    cluster_name: str
    kind: MembershipKind
    id: str
    name: str
    #: When that was noticed, in seconds since the epoch, by the database's clock.
    since: float = 0.0
    #: Whether the engine's log says so.
    reported: bool = False


class MembershipChange(msgspec.Struct, frozen=True):
    """What one look at the engine found."""

    #: Memberships of VMs that have others now than are remembered.
    seen: tuple[Seen, ...] = ()
    #: VMs without any membership now.
    without: tuple[str, ...] = ()
    lost: tuple[LostMembership, ...] = ()
    regained: tuple[LostMembership, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.seen or self.without or self.lost or self.regained)


class MembershipStore(StoreAccess):
    """The memberships of one engine's VMs, in a database."""

    def seen(self) -> dict[str, Seen]:
        """What was last seen of each VM that is a member of anything."""
        with self._reading() as rows:
            return {seen.vm: seen for seen in rows.records(Seen, rows.select(memberships))}

    def lost(self) -> tuple[LostMembership, ...]:
        """What was lost and not regained or forgotten since, the oldest first."""
        order = (lost_memberships.c.since, *lost_memberships.primary_key)
        with self._reading() as rows:
            return rows.records(LostMembership, rows.select(lost_memberships).order_by(*order))

    def change(self, change: MembershipChange) -> None:
        """Write down what a look found, all of it or nothing."""
        if change.empty:
            return
        with self._leading() as rows:
            rows.remove_all(memberships.c.vm, [*change.without, *(seen.vm for seen in change.seen)])
            rows.add_all(memberships, [msgspec.to_builtins(seen) for seen in change.seen])
            table = lost_memberships.c
            for one in (*change.regained, *change.lost):
                here = (table.vm == one.vm, table.kind == one.kind.value, table.name == one.name)
                rows.remove(lost_memberships, *here)
            since = rows.now()
            rows.add_all(
                lost_memberships, [{**msgspec.to_builtins(one), "since": since} for one in change.lost]
            )

    def mark_reported(self, vm: str, since: float) -> None:
        """Remember that the engine's log says what a VM lost at this moment or before."""
        with self._leading() as rows:
            table = lost_memberships
            rows.change(table, table.c.vm == vm, table.c.since <= since, reported=True)

    def forget_lost(self, vm: str) -> None:
        """Drop what a VM has lost: a user has dismissed it."""
        with self._transaction() as rows:
            rows.remove(lost_memberships, lost_memberships.c.vm == vm)
