"""Minimum of failure domains. Invariant: members run in at least `least` domains, or each in its own.

Source: ROADEF 2012's spreadMin. Fewer members than `least` that run cannot be in more domains than they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.model.amounts import counted
from ovirt_placement.rules.constraints import AtLeast
from ovirt_placement.rules.placement import Placement
from ovirt_placement.rules.placement_rules.domains import InDomains, count_others
from ovirt_placement.rules.placement_rules.kind import NOBODY, Against, Judge, PlacementKind, common
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.verdict import ReasonKind

TOO_FEW_DOMAINS = ReasonKind(
    "too_few_domains",
    "{group} wants its VMs in {number:g} failure domains at least, and here they would be in too few",
    veto=True,
)


class MinimumDomains(InDomains, frozen=True, kw_only=True):
    asks: ClassVar[str] = "in several failure domains"

    least: int

    @property
    def form(self) -> AtLeast:
        return AtLeast(self.least, self.domain_of)

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that could leave a domain without giving it up, where there are too few."""
        if not self.surplus(placement):
            return ()
        counts = Counter(self.domain_of.get(host) for _, host in self.running(placement))
        return tuple(
            vm
            for vm, host in self.running(placement)
            if (own := self.domain_of.get(host)) is None or counts[own] > 1
        )

    def surplus(self, placement: Placement) -> int:
        hosts = [host for _, host in self.running(placement)]
        domains = {self.domain_of[host] for host in hosts if host in self.domain_of}
        return max(0, min(self.least, len(hosts)) - len(domains))

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        """Against domains that others are in already, as long as there are too few."""
        others = count_others(self.vms, vm, placement, self.domain_of, unconfirmed)
        home = self.home(vm, placement)
        needed = min(self.least, others.running + others.unknown + 1)

        def against(host: str) -> Against | None:
            domain = self.domain_of.get(host)
            if domain is not None and (domain == home or domain not in others.surely):
                return None
            if len(others.surely) + others.unknown >= needed:
                return None
            return Against(TOO_FEW_DOMAINS, self.least, self.peers_in(domain, vm, placement))

        return against


def _make_minimum(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> MinimumDomains:
    return MinimumDomains(vms=vms, least=found.rule.least or 0, domain_of=found.domain_of, **common(found))


def _too_few_domains(found: Resolved, hosts: frozenset[str]) -> Iterator[str]:
    domains, least = len(set(found.domain_of.values())), found.rule.least or 0
    if min(len(found.vms), least) > domains:
        yield f"{counted(domains, 'failure domain')} exist, and the VMs are to run in {least}"


KIND = PlacementKind(
    name="minimum_domains",
    summary="the VMs in at least `least` failure domains",
    needs=("vms", "least"),
    in_domains=True,
    make=_make_minimum,
    impossible=_too_few_domains,
)
