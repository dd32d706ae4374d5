"""Limits of how many sets of VMs share a place: a host or a failure domain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import ClassVar

from ovirt_placement.rules.forms import AtMost
from ovirt_placement.rules.placement import Placement
from ovirt_placement.rules.placement_rules.kind import NOBODY, Against, Judge, PlacementConstraint
from ovirt_placement.rules.reasons import ReasonKind

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
        sizes = (sorted(map(len, sets.values())) for sets in there.values())
        return sum(sum(each[: max(0, len(each) - self.limit.most)]) for each in sizes)

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

    def _others(self, vm: str, placement: Placement, unconfirmed: frozenset[str]) -> _There:
        peers = (peer for peer in self.vms if peer != vm and peer not in unconfirmed)
        return self._there({peer: placement.occupied(peer) for peer in peers})

    def _there(self, hosts_of: Mapping[str, tuple[str, ...]]) -> _There:
        found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for vm, hosts in hosts_of.items():
            for place in dict.fromkeys(map(self.limit.place, hosts)):
                found[place][self.limit.own_set(vm)].append(vm)
        return found
