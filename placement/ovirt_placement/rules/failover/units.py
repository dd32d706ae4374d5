"""What fails whole: single hosts, or failure domains of several hosts, as a rack; and sets of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import comb

from ovirt_placement.lookups.called import begins
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record

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

    #: None for hosts that somebody asks about.
    name: str | None
    hosts: frozenset[str]


def single_hosts(hosts: Iterable[str]) -> tuple[FailureUnit, ...]:
    return tuple(FailureUnit((host,)) for host in hosts)


def whole_domains(domains: Iterable[Domain], hosts: Sequence[str]) -> tuple[FailureUnit, ...]:
    """The domains that have any of these hosts, with those of them that they have, in this order."""
    found = ((domain, tuple(host for host in hosts if host in domain.hosts)) for domain in domains)
    return tuple(FailureUnit(own, domain.name) for domain, own in found if own)


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


def domains_of(units: Sequence[FailureUnit], chosen: Iterable[int]) -> tuple[str, ...]:
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
    among = _Among(touched, larger)
    return sum(among.count(part) * comb(untouched, size - part) for part in range(size + 1))


class _Among:
    """Members that bad sets are made of; those sets have two members or more."""

    def __init__(self, members: Iterable[int], bad: Iterable[Chosen]) -> None:
        self._all = sum(1 << member for member in members)
        #: By all members of a bad set but the last, the last ones.
        self._closing: dict[Chosen, int] = {}
        for one in bad:
            *first, last = one
            self._closing[tuple(first)] = self._closing.get(tuple(first), 0) | 1 << last
        self._longest = max(map(len, self._closing), default=0)

    def count(self, size: int) -> int:
        """Count the sets of this size."""
        return self._count((), self._all, size) if size else 1

    def _count(self, chosen: Chosen, still_open: int, left: int) -> int:
        if left == 1:
            return still_open.bit_count()
        found = 0
        while still_open:
            lowest = still_open & -still_open
            still_open ^= lowest
            more = (*chosen, lowest.bit_length() - 1)
            found += self._count(more, still_open & ~closed(self._closing, more, self._longest), left - 1)
        return found


def closed(closing: Mapping[Chosen, int], chosen: Chosen, longest: int) -> int:
    """The members that must not follow, as bits, since the last one of those chosen was added."""
    *before, last = chosen
    mask = closing.get((last,), 0)
    for size in range(1, min(longest, len(chosen))):
        for some in combinations(before, size):
            mask |= closing.get((*some, last), 0)
    return mask
