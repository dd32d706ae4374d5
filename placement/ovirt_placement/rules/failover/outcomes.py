"""What can be said of hosts that fail together: survived, lost or not known; and of all such sets at once."""

from __future__ import annotations

from ovirt_placement.rules.record import Record


class Survival(Record, frozen=True):
    """Hosts that may fail together, and where each highly available VM on them would restart.

    The VMs stand in the order of the starts.
    """

    hosts: tuple[str, ...]
    homes: dict[str, str]


class Loss(Record, frozen=True):
    """Hosts that must not fail together, and VMs that a best effort leaves without a home."""

    hosts: tuple[str, ...]
    homeless: tuple[str, ...]


class Unknown(Record, frozen=True):
    """Hosts for which the work budget ended before an answer."""

    hosts: tuple[str, ...]


Outcome = Survival | Loss | Unknown


class Proven(Record, frozen=True):
    """What is proven, by one measure, about the failure of so many hosts of a cluster at once."""

    #: Whether every such failure is survived; None if that is not known.
    safe: bool | None
    #: The smallest sets of hosts whose failure is not survived.
    losses: tuple[Loss, ...]
    #: Sets that were too hard.
    unknown: tuple[Unknown, ...]
    #: How many sets are proven to be survived.
    survived: int
    #: How many sets the budget left unjudged, the largest ones.
    unjudged: int
    #: Where everything goes when one host fails, for each host whose failure is survived.
    survivals: tuple[Survival, ...]
