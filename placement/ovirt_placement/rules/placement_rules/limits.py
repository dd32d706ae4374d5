"""Limits of how many VMs, or sets of them, share a host or a failure domain.

At most k per host, or per failure domain: none runs more than `most` members. A host that is in no domain is
one by itself. Source: Nova's `max_server_per_host`.

Set against set: no host runs members of both sets; members of one set may share hosts. A VM that is in both
sets counts for the first. Source: BtrPlace's Split.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import counted
from ovirt_placement.rules.elements.constraints import AtMost
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.verdict import ReasonKind
from ovirt_placement.rules.placement_rules.kind import (
    NOBODY,
    Against,
    Judge,
    PlacementConstraint,
    PlacementKind,
    common,
)
from ovirt_placement.rules.placement_rules.members import Resolved

#: By place and set, the VMs that are there.
_There = Mapping[str, Mapping[str, list[str]]]


class Limited(PlacementConstraint, frozen=True, kw_only=True):
    """Invariant: on each place VMs of at most `form.most` sets. A subclass says which places and sets."""

    refusal: ClassVar[ReasonKind]

    limit: AtMost

    @property
    def form(self) -> AtMost:
        return self.limit

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members on places with too many."""
        there = self._there({vm: (host,) for vm, host in self.running(placement)})
        place = self.limit.place
        return tuple(vm for vm, host in self.running(placement) if len(there[place(host)]) > self.limit.most)

    def surplus(self, placement: Placement) -> int:
        """From each place the smallest sets that are too many."""
        there = self._there({vm: (host,) for vm, host in self.running(placement)})
        return sum(self.limit.excess(map(len, sets.values())) for sets in there.values())

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        """Against places that others have filled; one that migrates counts at both ends."""
        limit, own = self.limit, self.limit.own_set(vm)
        there = self._others(vm, placement, unconfirmed)

        def against(host: str) -> Against | None:
            sets = there.get(limit.place(host), {})
            if len(sets) - (own in sets) < limit.most:
                return None
            others = tuple(peer for one, peers in sets.items() if one != own for peer in peers)
            return Against(self.refusal, limit.most, others)

        return against

    def more_excess(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """Only the place that a member leaves and the one that it comes to count."""
        there, own, limit = self._others(vm, placement, NOBODY), self.limit.own_set(vm), self.limit

        def by_one(place: str) -> int:
            """By how much the excess of a place is larger with the member than without it."""
            sizes = {name: len(vms) for name, vms in there.get(place, {}).items()}
            return limit.excess({**sizes, own: sizes.get(own, 0) + 1}.values()) - limit.excess(sizes.values())

        source = placement.runs_on(vm)
        left = None if source is None else limit.place(source)
        less = 0 if left is None else by_one(left)
        return lambda host: 0 if limit.place(host) == left else by_one(limit.place(host)) - less

    def _others(self, vm: str, placement: Placement, unconfirmed: frozenset[str]) -> _There:
        peers = (peer for peer in self.vms if peer != vm and peer not in unconfirmed)
        return self._there({peer: placement.occupied(peer) for peer in peers})

    def _there(self, hosts_of: Mapping[str, tuple[str, ...]]) -> _There:
        found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for vm, hosts in hosts_of.items():
            for place in dict.fromkeys(map(self.limit.place, hosts)):
                found[place][self.limit.own_set(vm)].append(vm)
        return found


HOST_IS_FULL = ReasonKind(
    "host_is_full", "{group} allows {number:g} of its VMs on a host, and this host is full", veto=True
)


class AtMostPerHost(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "few on each host"
    refusal: ClassVar[ReasonKind] = HOST_IS_FULL


def _make_per_host(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> AtMostPerHost:
    return AtMostPerHost(vms=vms, limit=AtMost(found.rule.most or 0), **common(found))


def _too_few_hosts(found: Resolved, hosts: frozenset[str]) -> Iterator[str]:
    return _too_few(found, len(hosts), f"on each of {counted(len(hosts), 'host')}")


def _too_few(found: Resolved, places: int, where: str) -> Iterator[str]:
    most = found.rule.most or 0
    if len(found.vms) > most * places:
        yield f"{counted(len(found.vms), 'VM')} cannot run with at most {most} {where}"


AT_MOST_PER_HOST = PlacementKind(
    name="at_most_per_host",
    summary="at most `most` of the VMs on a host",
    needs=("vms", "most"),
    make=_make_per_host,
    impossible=_too_few_hosts,
)


DOMAIN_IS_FULL = ReasonKind(
    "domain_is_full",
    "{group} allows {number:g} of its VMs in a failure domain, and that of this host is full",
    veto=True,
)


class AtMostPerDomain(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "few in each failure domain"
    refusal: ClassVar[ReasonKind] = DOMAIN_IS_FULL


def _make_per_domain(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> AtMostPerDomain:
    limit = AtMost(found.rule.most or 0, place_of=found.domain_of)
    return AtMostPerDomain(vms=vms, limit=limit, **common(found))


def _too_few_domains(found: Resolved, hosts: frozenset[str]) -> Iterator[str]:
    """A host in no domain is one by itself."""
    places = len({found.domain_of.get(host, host) for host in hosts})
    return _too_few(found, places, f"in each of {counted(places, 'failure domain')}")


AT_MOST_PER_DOMAIN = PlacementKind(
    name="at_most_per_domain",
    summary="at most `most` of the VMs in a failure domain",
    needs=("vms", "most"),
    in_domains=True,
    make=_make_per_domain,
    impossible=_too_few_domains,
)


OTHER_SET_HERE = ReasonKind("other_set_here", "{group} keeps VM {vm} here and this VM apart", veto=True)


class Separate(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "apart from the other set"
    refusal: ClassVar[ReasonKind] = OTHER_SET_HERE


def _both(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*found.vms, *found.other_vms)))


def _make_separate(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> Separate:
    first = frozenset(found.vms)
    limit = AtMost(1, {vm: "first" if vm in first else "second" for vm in vms})
    return Separate(vms=vms, limit=limit, **common(found))


SEPARATE = PlacementKind(
    name="separate",
    summary="no host with VMs of both sets",
    needs=("vms", "other_vms"),
    concerned=_both,
    make=_make_separate,
)
