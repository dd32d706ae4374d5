"""Spread evenly over failure domains. Invariant: no two domains differ by more than `max_skew` members.

Of eligible domains alone: those with a host that is up and that members may run on. With fewer than
`min_domains` of these, the emptiest counts as empty. A host that is in no domain is no place for a member.

Source: Kubernetes' topologySpreadConstraints, judged on the whole placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.constraints import Even
from ovirt_placement.rules.placement import Placement
from ovirt_placement.rules.placement_rules.domains import (
    HOST_IN_NO_DOMAIN,
    Counts,
    InDomains,
    count_others,
    eligible_domains,
)
from ovirt_placement.rules.placement_rules.kind import NOBODY, Against, Judge, PlacementKind, common
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.verdict import ReasonKind

DOMAINS_TOO_UNEVEN = ReasonKind(
    "domains_too_uneven",
    "{group} lets failure domains differ by {number:g} of its VMs, and here they would by more",
    veto=True,
)


class Spread(InDomains, frozen=True, kw_only=True):
    asks: ClassVar[str] = "evenly over failure domains"

    max_skew: int
    min_domains: int
    eligible: frozenset[str]

    @property
    def form(self) -> Even:
        few = len(self.eligible) < self.min_domains
        return Even(self.max_skew, self.domain_of, self.eligible, from_nothing=few)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members of domains with too many, and those in no domain."""
        counts = Counter(self.domain_of.get(host) for _, host in self.running(placement))
        most = self.max_skew + self._minimum(counts)
        crowded = {one for one, members in counts.items() if one in self.eligible and members > most}
        return tuple(
            vm
            for vm, host in self.running(placement)
            if (own := self.domain_of.get(host)) is None or own in crowded
        )

    def surplus(self, placement: Placement) -> int:
        """The fewest that must leave or come, for the best level of the emptiest domain."""
        counts = Counter(self.domain_of.get(host) for _, host in self.running(placement))
        if not self.offenders(placement) or not self.eligible:
            return counts[None]
        own = [counts[domain] for domain in self.eligible]
        levels = range(max(own) + 1) if len(self.eligible) >= self.min_domains else (0,)
        return min(
            max(
                counts[None] + sum(max(0, members - level - self.max_skew) for members in own),
                sum(max(0, level - members) for members in own),
            )
            for level in levels
        )

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        """Against domains that would have too many, and against leaving one that would have too few."""
        others = count_others(self.vms, vm, placement, self.domain_of, unconfirmed)
        home = self.home(vm, placement)
        before = self._skew(others, home)

        def against(host: str) -> Against | None:
            domain = self.domain_of.get(host)
            if domain is None:
                return Against(HOST_IN_NO_DOMAIN)
            if domain == home or domain not in self.eligible:
                return None
            crowded = others.at_most[domain] + 1 - self._lowest(others, domain) > self.max_skew
            after = self._skew(others, domain)
            if crowded or after > max(self.max_skew, before):
                return Against(DOMAINS_TOO_UNEVEN, self.max_skew, self.peers_in(domain, vm, placement))
            return None

        return against

    def _skew(self, others: Counts, domain: str | None) -> int:
        """By how much the domains differ at most, with one more in a domain."""
        highest = max((others.at_most[one] + (one == domain) for one in self.eligible), default=0)
        return highest - self._lowest(others, domain)

    def _lowest(self, others: Counts, domain: str | None) -> int:
        """How many the emptiest domain has, at the best for those of whom nobody knows where they are."""
        counts = others.surely.copy()
        if domain is not None:
            counts[domain] += 1
        for _ in range(others.unknown if len(self.eligible) >= self.min_domains else 0):
            counts[min(self.eligible, key=lambda one: counts[one], default="")] += 1
        return self._minimum(counts)

    def _minimum(self, counts: Mapping[Any, int]) -> int:
        if len(self.eligible) < self.min_domains:
            return 0
        return min((counts.get(domain, 0) for domain in self.eligible), default=0)


def _make_spread(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> Spread:
    return Spread(
        vms=vms,
        max_skew=found.rule.max_skew or 0,
        min_domains=found.rule.min_domains or 0,
        domain_of=found.domain_of,
        eligible=eligible_domains(snapshot, found),
        **common(found),
    )


def _too_few_domains(found: Resolved, hosts: frozenset[str]) -> Iterator[str]:
    domains, least = len(set(found.domain_of.values())), found.rule.min_domains or 0
    room = domains * (found.rule.max_skew or 0)
    if domains < least and len(found.vms) > room:
        yield (
            f"with {domains} of {least} failure domains only {room} of {len(found.vms)} VMs can run:"
            f" {found.rule.max_skew} in each"
        )


KIND = PlacementKind(
    name="spread",
    summary="failure domains differ by at most `max_skew` of the VMs",
    needs=("vms", "max_skew"),
    takes=("min_domains",),
    in_domains=True,
    make=_make_spread,
    impossible=_too_few_domains,
)
