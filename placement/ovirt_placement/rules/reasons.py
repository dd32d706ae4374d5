"""What speaks for or against a host, as data; the rule that says it declares the kind, with its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ovirt_placement.model.record import Record


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
