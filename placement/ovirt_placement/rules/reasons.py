"""What speaks for or against a host, as data; the rule that says it declares the kind, with its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import (
    HOST_STATISTICS,
    HOST_TAGS,
    STORED,
    VM_DETAILS,
    VM_STATISTICS,
    Part,
)


@dataclass(frozen=True, eq=False, slots=True)
class ReasonKind:
    """One thing that a rule can say of a host; each kind is one object, and compared as such."""

    name: str
    #: With the reason's fields in braces; {vm}, {host} and {group} become names.
    sentence: str
    #: Whether it keeps the VM off the host. Else it is a note, which changes nothing.
    veto: bool = False
    #: Whether the engine's administrators learn, by an event, and not only who asks.
    loud: bool = False
    #: Whether it is logged of a host that is accepted in spite of it.
    warned: bool = False

    def __repr__(self) -> str:
        return self.name

    @property
    def unconfirmed(self) -> ReasonKind:
        """The same, said of what is only expected: that vetoes nothing."""
        return _unconfirmed(self)


@cache
def _unconfirmed(kind: ReasonKind) -> ReasonKind:
    return ReasonKind(f"{kind.name}_unconfirmed", f"expected, not confirmed: {kind.sentence}")


#: Said of a host that nothing refuses, but that might be refused by what has not been read yet.
NOT_KNOWN_YET = ReasonKind("not_known_yet", "not known yet: {status}", warned=True)
_UNREAD: Mapping[Part, str] = {
    HOST_TAGS: "the tags of hosts have not been read yet",
    HOST_STATISTICS: "how busy hosts are has not been read yet",
    VM_STATISTICS: "how busy VMs are has not been read yet",
    VM_DETAILS: "tags, owners, disks and interfaces of VMs have not been read yet",
    STORED: "placement keys and rules could not be read from the store yet",
}


def unread(snapshot: Snapshot, *parts: Part) -> tuple[str, ...]:
    """Which of these parts, or of all, are needed and have not been read, as sentences."""
    return tuple(_UNREAD[part] for part in snapshot.unread if part in (parts or _UNREAD))


class Reason(Record, frozen=True):
    """One thing that speaks about a host; its kind says which fields count and what they mean.

    `group` is the id of an affinity group, or of a legacy label that acts as one.
    """

    kind: ReasonKind
    group: str | None = None
    vm: str | None = None
    host: str | None = None
    number: float | None = None
    unit: str | None = None
    status: str | None = None
