"""What fails whole, what can be said of it, and which highly available VMs would be lost with it.

Single hosts fail, or failure domains of several hosts, as a rack; and sets of these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Final

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import begins
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.placement import LEAVABLE
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind

#: Sets that are looked at to count exactly; beyond, the count is a lower bound.
MOST_LOOKED_AT = 3_000_000
#: Members by number, in ascending order.
Chosen = tuple[int, ...]


class FailureUnit(Record, frozen=True):
    """Hosts that fail together."""

    hosts: tuple[str, ...]
    #: The domain's name; None for a host that stands for itself.
    domain: str | None = None


class Domain(Record, frozen=True):
    """A failure domain: whatever hosts it lists fail together."""

    #: None for hosts that a caller asks about.
    name: str | None
    hosts: frozenset[str]


def single_hosts(hosts: Iterable[str]) -> tuple[FailureUnit, ...]:
    return tuple(FailureUnit((host,)) for host in hosts)


def whole_domains(domains: Iterable[Domain], hosts: Sequence[str]) -> tuple[FailureUnit, ...]:
    """The domains that have any of these hosts, with those of them that they have, in this order."""
    found = ((domain, tuple(host for host in hosts if host in domain.hosts)) for domain in domains)
    return tuple(FailureUnit(own, domain.name) for domain, own in found if own)


def to_survive(
    hosts: Sequence[str], failures: int, domains: Iterable[Domain]
) -> Iterator[tuple[tuple[FailureUnit, ...], int]]:
    """What a reservation is for: some units, and how many of them at once: these hosts, and each domain."""
    yield single_hosts(hosts), failures
    if units := whole_domains(domains, hosts):
        yield units, 1


def tagged_domains(snapshot: Snapshot, prefixes: Sequence[str]) -> tuple[Domain, ...]:
    """A domain for each host tag that begins with one of these prefixes or patterns, named as it."""
    by_tag: dict[str, set[str]] = {}
    for host in snapshot.hosts:
        for tag in host.tags:
            if any(begins(prefix, tag) for prefix in prefixes):
                by_tag.setdefault(tag, set()).add(host.id)
    return tuple(Domain(tag, frozenset(by_tag[tag])) for tag in sorted(by_tag))


def failing_hosts(units: Sequence[FailureUnit], chosen: Iterable[int]) -> tuple[str, ...]:
    """All hosts of the units with these numbers, each once."""
    return tuple(dict.fromkeys(host for number in chosen for host in units[number].hosts))


def failing_domains(units: Sequence[FailureUnit], chosen: Iterable[int]) -> tuple[str, ...]:
    """The names of those of them that are domains."""
    return tuple(name for number in chosen if (name := units[number].domain) is not None)


def sets_without(members: int, size: int, bad: Iterable[Chosen]) -> int:
    """Count the sets of this size among this many members that contain no bad one; or at least this many.

    Exact unless that would take too long.
    """
    unwanted = set(bad)
    singles = {one[0] for one in unwanted if len(one) == 1}
    larger = [one for one in unwanted if 1 < len(one) <= size and singles.isdisjoint(one)]
    touched = sorted({member for one in larger for member in one})
    untouched = members - len(singles) - len(touched)
    if comb(len(touched), max(0, size - 1)) > MOST_LOOKED_AT:
        left = members - len(singles)
        spoilt = sum(comb(left - len(one), size - len(one)) for one in larger)
        return max(0, comb(left, size) - spoilt)
    #: By all members of a bad set but the last, the last ones, as bits.
    closing: dict[Chosen, int] = {}
    for *first, last in larger:
        closing[tuple(first)] = closing.get(tuple(first), 0) | 1 << last
    longest = max(map(len, closing), default=0)

    def count(chosen: Chosen, still_open: int, left: int) -> int:
        """In how many ways this many can follow those that were chosen."""
        if left <= 1:
            return still_open.bit_count() if left else 1
        found = 0
        while still_open:
            lowest = still_open & -still_open
            still_open ^= lowest
            more = (*chosen, lowest.bit_length() - 1)
            found += count(more, still_open & ~closed(closing, more, longest), left - 1)
        return found

    everyone = sum(1 << member for member in touched)
    return sum(count((), everyone, part) * comb(untouched, size - part) for part in range(size + 1))


def closed(closing: Mapping[Chosen, int], chosen: Chosen, longest: int) -> int:
    """The members that must not follow, as bits, since the last one of those chosen was added."""
    *before, last = chosen
    mask = closing.get((last,), 0)
    for size in range(1, min(longest, len(chosen))):
        for some in combinations(before, size):
            mask |= closing.get((*some, last), 0)
    return mask


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


class ForeseenFailures(Record, frozen=True, omit_defaults=False):
    """How many hosts may fail at once, whichever they are."""

    count: int
    #: Whether one more may surely not; else it was not tried, or is not known.
    exact: bool


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

    def survived_at_once(self, most: int) -> ForeseenFailures:
        """How many hosts may fail, where all sets of at most `most` of them were to be judged."""
        lost = min((len(loss.hosts) for loss in self.losses), default=most + 1)
        left = self.sizes or (Size(1, self.survived, self.unjudged),)
        open_sizes = (*(len(one.hosts) for one in self.unknown), *(one.size for one in left if one.unjudged))
        unknown = min(open_sizes, default=most + 1)
        return ForeseenFailures(min(lost, unknown) - 1, exact=lost <= min(unknown, most))


#: Stands for the host of VMs that are lost and on no host that is known.
NOWHERE: Final = ""


class Outside(Record, frozen=True):
    """A VM that is down, as its user or administrator wants it: no failure concerns it."""

    vm: str
    #: The REST API's words.
    status: str


class Lost(Record, frozen=True):
    """A VM that crashed, is unknown, or is on a host that does not answer: lost until it runs again."""

    vm: str
    #: The REST API's words.
    status: str
    #: The host that it was on, and that host's status; None where neither is known.
    host: str | None = None
    host_status: str | None = None
    #: Where it could be started now, together with all others that are lost; None where no host takes it, or
    #: where that is not known.
    home: str | None = None
    #: Whether the budget ended before that was known.
    unjudged: bool = False


def may_fail(snapshot: Snapshot, cluster_id: str) -> tuple[str, ...]:
    """Hosts that answer, and that are up or have VMs: what does not answer has failed already."""
    hosts = snapshot.hosts_of_cluster.get(cluster_id, ())
    holding = snapshot.vms_of_host
    return tuple(one.id for one in hosts if one.up or (one.status in LEAVABLE and one.id in holding))


def protected(snapshot: Snapshot, hosts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Highly available VMs by the host that they would be lost with."""
    return {host: tuple(vm.id for vm in snapshot.vms_of_host.get(host, ()) if vm.ha) for host in hosts}


def find_lost(snapshot: Snapshot, cluster_id: str) -> tuple[Lost, ...]:
    """Highly available VMs of a cluster that do not run, though no user has stopped them."""
    lost = (vm for vm in snapshot.vms if vm.cluster == cluster_id and vm.ha and is_lost(snapshot, vm))
    on = ((vm, snapshot.host_by_id.get(vm.host or "")) for vm in lost)
    return tuple(
        Lost(vm.id, vm.status) if host is None else Lost(vm.id, vm.status, host.id, host.status)
        for vm, host in on
    )


#: A host in another status has failed, or is on its way back.
_IN_ORDER = frozenset(
    {
        "up",
        "maintenance",
        "preparing_for_maintenance",
        "installing",
        "installing_os",
        "install_failed",
        "pending_approval",
    }
)


def has_failed(host: Host) -> bool:
    return host.status not in _IN_ORDER


def is_lost(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether a VM crashed, is unknown, or stands on a host that does not answer."""
    host = snapshot.host_by_id.get(vm.host or "")
    return vm.crashed or vm.status == "unknown" or (host is not None and host.status not in LEAVABLE)


def find_outside(snapshot: Snapshot, cluster_id: str) -> Iterator[Outside]:
    """Highly available VMs of a cluster that run nowhere, and are not lost."""
    for vm in snapshot.vms:
        if vm.cluster == cluster_id and vm.ha and vm.host is None and not is_lost(snapshot, vm):
            yield Outside(vm.id, vm.status)


TAGS = "ha_admission_domain_tags"
LISTS = "ha_admission_domains"
UNKNOWN_HOST = ReasonKind(
    "admission_domain_host_unknown", f"{LISTS} names {{status}}, which is no host, or not one alone"
)


def domains_of(snapshot: Snapshot, parameters: Mapping[str, str]) -> tuple[Domain, ...]:
    """Those that are listed, with the hosts that there are, then those that tags name."""
    listed = tuple(
        Domain(name, frozenset(host for word in words for host in _called(snapshot, word)))
        for name, words in _lists(parameters)
    )
    return (*listed, *tagged_domains(snapshot, listed_tags(parameters)))


def listed_tags(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """What the tags of hosts that name domains begin with."""
    return tuple(filter(None, parameters.get(TAGS, "").split(",")))


def listed_hosts(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of all lists, by name or id, each once."""
    return tuple(dict.fromkeys(word for _, some in _lists(parameters) for word in some))


def unknown_hosts(snapshot: Snapshot, vm: str) -> tuple[Reason, ...]:
    """What the lists of a VM's cluster name that is no host."""
    known = snapshot.vm_by_id.get(vm)
    if known is None:
        return ()
    words = listed_hosts(snapshot.cluster_by_id[known.cluster].scheduling_properties)
    return tuple(Reason(UNKNOWN_HOST, status=word) for word in words if not _called(snapshot, word))


def _lists(parameters: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    for one in filter(None, parameters.get(LISTS, "").split("/")):
        name, _, hosts = one.partition(":")
        yield name, [word for word in hosts.split(",") if word]


def _called(snapshot: Snapshot, word: str) -> list[str]:
    """The host of this id, or the one of this name."""
    if word in snapshot.host_by_id:
        return [word]
    found = [host.id for host in snapshot.hosts if host.name == word]
    return found if len(found) == 1 else []
