"""What can be said of hosts that fail together: survived, lost or not known; and of all such sets at once."""

from __future__ import annotations

from ovirt_placement.model.record import Record


class Survival(Record, frozen=True):
    """Hosts that may fail together, and where each highly available VM on them would restart.

    The VMs stand in the order of the starts.
    """

    hosts: tuple[str, ...]
    homes: dict[str, str]
    #: The failure domains that fail, where domains do.
    domains: tuple[str, ...] = ()


class Loss(Record, frozen=True):
    """Hosts that must not fail together, and VMs that a best effort leaves without a home."""

    hosts: tuple[str, ...]
    unplaced: tuple[str, ...]
    domains: tuple[str, ...] = ()
    #: Where those start that can while the others are left out, in order; nothing where no order was tried.
    homes: dict[str, str] = {}
    #: Where the order alone is to blame: another one, in which each VM has a home.
    otherwise: dict[str, str] = {}


class Unknown(Record, frozen=True):
    """Hosts for which the work budget ended before an answer."""

    hosts: tuple[str, ...]
    domains: tuple[str, ...] = ()


Outcome = Survival | Loss | Unknown


class Size(Record, frozen=True):
    """What is proven about all sets of this many hosts, or domains."""

    size: int
    #: How many are proven to be survived.
    survived: int
    #: How many the budget left unjudged. All others are reported, or contain one that is lost.
    unjudged: int


class Tight(Record, frozen=True):
    """Hosts that were singled out since their failure leaves the least room, and what came of it."""

    hosts: tuple[str, ...]
    #: For how many more VMs of this size there is room then at most; below 0 there is too little.
    room_for: int
    memory_mb: int
    #: None where the budget ended before an answer.
    survived: bool | None
    domains: tuple[str, ...] = ()


class Proven(Record, frozen=True):
    """What is proven, by one measure, about the failure of this many hosts of a cluster at once."""

    #: Whether every such failure is survived; None if that is not known.
    safe: bool | None
    #: The smallest sets of hosts whose failure is not survived.
    losses: tuple[Loss, ...]
    #: Sets that were too hard.
    unknown: tuple[Unknown, ...]
    #: How many sets are proven to be survived; at least this many where millions of sets contain lost ones.
    survived: int
    #: How many sets the budget left unjudged.
    unjudged: int
    #: Where everything goes when one host fails, or one domain, for each whose failure is survived.
    survivals: tuple[Survival, ...]
    #: The same counts by the size of the sets.
    sizes: tuple[Size, ...] = ()
    #: The worst sets that were looked for where not all could be judged.
    tightest: tuple[Tight, ...] = ()
