"""Same failure domain, on any host. Invariant: all members that run, run in one of the domains.

Source: BtrPlace's Among.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.constraints import OnePlace
from ovirt_placement.rules.placement import Placement
from ovirt_placement.rules.placement_rules.domains import HOST_IN_NO_DOMAIN, InDomains
from ovirt_placement.rules.placement_rules.kind import NOBODY, Against, Judge, PlacementKind, common
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.verdict import ReasonKind

PEER_IN_OTHER_DOMAIN = ReasonKind(
    "peer_in_other_domain",
    "{group} wants its VMs in one failure domain, and VM {vm} is in another than this host",
    veto=True,
)


class SameDomain(InDomains, frozen=True, kw_only=True):
    asks: ClassVar[str] = "in one failure domain"
    positive: ClassVar[bool] = True

    @property
    def form(self) -> OnePlace:
        return OnePlace(self.domain_of)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members off the domain that most share; of domains with as many, the first by name gathers them."""
        counts = Counter(self.domain_of.get(host) for _, host in self.running(placement))
        named = {domain: members for domain, members in counts.items() if domain is not None}
        gathering = min(named, key=lambda domain: (-named[domain], domain), default=None)
        return tuple(
            vm
            for vm, host in self.running(placement)
            if gathering is None or self.domain_of.get(host) != gathering
        )

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        """Against domains without another member, where one is in any; within its own a member may move."""
        others = {
            self.domain_of[host]: peer
            for peer in reversed(self.vms)
            if peer != vm and peer not in unconfirmed
            for host in placement.destinations(peer)
            if host in self.domain_of
        }
        home = self.home(vm, placement)

        def against(host: str) -> Against | None:
            domain = self.domain_of.get(host)
            if domain is None:
                return Against(HOST_IN_NO_DOMAIN)
            if not others or domain in others or domain == home:
                return None
            return Against(PEER_IN_OTHER_DOMAIN, vms=tuple(others.values()))

        return against


def _make_same_domain(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> SameDomain:
    return SameDomain(vms=vms, domain_of=found.domain_of, **common(found))


KIND = PlacementKind(
    name="same_domain",
    summary="all of the VMs in one failure domain, on any host of it",
    needs=("vms",),
    in_domains=True,
    make=_make_same_domain,
)
