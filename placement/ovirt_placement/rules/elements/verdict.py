"""What a rule is asked and what it answers: verdicts and weights, with the reasons for or against a host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import HOST_STATISTICS, HOST_TAGS, STORED, VM_DETAILS, VM_STATISTICS, Part


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
    #: Whether it is about memory that a host lacks, in MiB.
    memory: bool = False

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


# Each answer is made of thousands of these. They hold no cycles: garbage is not looked for among them.
class Reason(Record, frozen=True, gc=False):
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


def sentence(reason: Reason, snapshot: Snapshot) -> str:
    """What a reason says, with the names of what it is about."""
    return reason.kind.sentence.format(
        vm=vm_name(reason.vm or "", snapshot),
        host=host_name(reason.host or "", snapshot),
        group=group_name(reason.group or "", snapshot),
        number=reason.number,
        unit=reason.unit or "",
        status=reason.status or "",
    )


class Request(Record, frozen=True):
    """Which VMs look for one common host, and among which hosts."""

    vms: tuple[str, ...]
    candidate_hosts: tuple[str, ...]
    #: The parameters of the cluster's scheduling policy.
    parameters: Mapping[str, str] = {}
    #: Asked as the engine asks: it moves a positive group as a whole, but VM by VM.
    as_engine: bool = False
    #: Whether anybody will read the reasons; if not, a rule may leave out what costs it time.
    explained: bool = True
    #: Hosts in an order drawn by lot, for rules that decide at random between equals.
    drawn: tuple[str, ...] = ()
    #: Other VMs that were decided about a moment ago: where the engine has them is not known, so that they
    #: veto nothing. The engine knows; its own filters have judged by it.
    unconfirmed: frozenset[str] = frozenset()

    def known_vms(self, snapshot: Snapshot) -> list[Vm]:
        """The VMs that are in the snapshot."""
        return [snapshot.vm_by_id[vm] for vm in self.vms if vm in snapshot.vm_by_id]


class Verdict(Record, frozen=True, gc=False):
    """Whether a rule admits a host, and why; an accepted host carries notes only."""

    host: str
    accepted: bool
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def of_reasons(cls, host: str, reasons: tuple[Reason, ...]) -> Verdict:
        """Accept the host unless one of the reasons is a veto."""
        return cls(host, not any(reason.kind.veto for reason in reasons), reasons)


def judge_known(
    snapshot: Snapshot, request: Request, reasons: Callable[[Host], Iterable[Reason]]
) -> tuple[Verdict, ...]:
    """Judge each candidate host by itself; of one that is not known nothing is said."""
    known = snapshot.host_by_id
    return tuple(
        Verdict.of_reasons(host, tuple(reasons(known[host])) if host in known else ())
        for host in request.candidate_hosts
    )


class Weight(Record, frozen=True, gc=False):
    """A rule's preference for a host among those asked about, and why.

    Rank 0 is best; hosts with the same rank are tied, and no rank between 0 and the worst is missing.
    """

    host: str
    rank: int
    reasons: tuple[Reason, ...] = ()


class BalanceRequest(Record, frozen=True):
    """Among which hosts of one cluster a VM is to move, if at all."""

    candidate_hosts: tuple[str, ...]
    #: The parameters of the cluster's scheduling policy.
    parameters: Mapping[str, str] = {}
    #: For how many minutes hosts have been overloaded that are so now; others count as so for ever.
    overloaded_minutes: Mapping[str, float] = {}


class BalanceMove(Record, frozen=True):
    """A VM to migrate and the hosts that may take it, the best first."""

    vm: str
    hosts: tuple[str, ...]


def whole_number(parameters: Mapping[str, str], name: str, default: int) -> int:
    """A parameter of a unit; the default where the policy does not set it, or sets what is no number."""
    value = parameters.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else default


def decimal_number(parameters: Mapping[str, str], name: str) -> float:
    """A parameter that may have decimals; 0 where the policy does not set it, or sets what is no number."""
    try:
        number = float(parameters.get(name, ""))
    except ValueError:
        return 0.0
    return number if isfinite(number) else 0.0
