"""What a rule is asked and what it answers: verdicts on hosts, and weights, with their reasons as data."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.model.record import Record
from ovirt_placement.rules.reasons import Reason


class Request(Record, frozen=True):
    """Which VMs look for one common host, and among which hosts."""

    vms: tuple[str, ...]
    candidate_hosts: tuple[str, ...]
    ignore_hard_vm_affinity: bool = False
    #: The parameters of the cluster's scheduling policy.
    parameters: Mapping[str, str] = {}
    #: Asked as the engine asks: it moves a positive group as a whole, but VM by VM (see `affinity.draining`).
    as_engine: bool = False
    #: Whether anybody will read the reasons; if not, a rule may leave out what costs it time.
    explained: bool = True
    #: Hosts in an order drawn by lot, for rules that decide at random between equals.
    drawn: tuple[str, ...] = ()
    #: Other VMs that were decided about a moment ago: where the engine has them is not known, so that they
    #: veto nothing. The engine knows; its own filters have judged by it.
    unconfirmed: frozenset[str] = frozenset()


class Verdict(Record, frozen=True):
    """Whether a rule admits a host, and why; an accepted host carries notes only."""

    host: str
    accepted: bool
    reasons: tuple[Reason, ...] = ()
    #: What else the rule found out about the host, for those who know the rule.
    details: object = None

    @classmethod
    def of(cls, host: str, reasons: tuple[Reason, ...], details: object = None) -> Verdict:
        """Accept the host unless one of the reasons is a veto."""
        return cls(host, not any(reason.kind.veto for reason in reasons), reasons, details)


class Weight(Record, frozen=True):
    """A rule's preference for a host among those asked about, and why.

    Rank 0 is best; hosts with the same rank are tied, and no rank between 0 and the worst is missing.
    """

    host: str
    rank: int
    reasons: tuple[Reason, ...] = ()
    #: As in a verdict.
    details: object = None


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
