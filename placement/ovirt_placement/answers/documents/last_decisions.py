"""The answer of `ovirt-placement why VM --last` as data."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.answers.document import Document
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record


class HostInDecision(Record, frozen=True, omit_defaults=False):
    """What the proxy's units said of one host."""

    host: Named
    #: Names of the units that dropped it.
    dropped_by: tuple[str, ...]
    #: By unit; lower is better.
    weights: Mapping[str, int]


class PastDecision(Record, frozen=True, omit_defaults=False):
    """One answer of the proxy."""

    #: ISO 8601.
    time: str
    #: The id that the proxy's log knows the call by.
    request: str
    method: str
    seconds: float
    #: By unit: how old the state was that it decided on, in seconds, where it says so.
    state_age_seconds: Mapping[str, float]
    sentence: str
    hosts: tuple[HostInDecision, ...]
    #: Of a balance, the hosts that the VM is to move to.
    move_to: tuple[Named, ...]
    #: What units that failed, or refused the VM, had to say.
    failures: Mapping[str, str]


class LastDecisionsDocument(Document, frozen=True, kw_only=True, tag="last_decisions"):
    """What the scheduler proxy answered last about a VM."""

    vm: Named
    decisions: tuple[PastDecision, ...]
