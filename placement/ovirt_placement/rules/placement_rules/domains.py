"""Failure domains: how many members are in which, and where members can be at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ovirt_placement.model import AffinityGroup, Host, Snapshot
from ovirt_placement.rules.affinity.host_groups import configured, hard_host_groups_of, listed_hosts
from ovirt_placement.rules.placement import Placement
from ovirt_placement.rules.placement_rules.kind import NOBODY, PlacementConstraint
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.verdict import ReasonKind

HOST_IN_NO_DOMAIN = ReasonKind("host_in_no_domain", "this host is in no failure domain of {group}", veto=True)
#: The hard host rules of a VM, and the hosts that it is pinned to.
_Bounds = tuple[tuple[AffinityGroup, ...], frozenset[str] | None]


class InDomains(PlacementConstraint, frozen=True, kw_only=True):
    """One that asks for failure domains."""

    domain_of: Mapping[str, str]

    @property
    def places(self) -> Mapping[str, str]:
        return self.domain_of

    def home(self, vm: str, placement: Placement) -> str | None:
        """The domain that a member runs in."""
        host = placement.runs_on(vm)
        return None if host is None else self.domain_of.get(host)

    def peers_in(self, domain: str | None, vm: str, placement: Placement) -> tuple[str, ...]:
        """Other members that are in a domain, or in none."""
        return tuple(
            peer
            for peer in self.vms
            if peer != vm and any(self.domain_of.get(host) == domain for host in placement.occupied(peer))
        )

    def company(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """Where members are drawn together, company is no harm."""
        if self.positive:
            return super().company(vm, placement)
        others = count_others(self.vms, vm, placement, self.domain_of, NOBODY)
        return lambda host: others.at_most[self.domain_of.get(host, "")]


class Counts(NamedTuple):
    """Of members other than the one that is asked about."""

    #: Those that are in a domain and nowhere else.
    surely: Counter[str]
    #: Those that hold a host there, too: a migrating VM counts at both ends.
    at_most: Counter[str]
    #: How many are on any host.
    running: int
    #: How many are somewhere, and nobody knows where.
    unknown: int


def count_others(
    vms: tuple[str, ...],
    vm: str,
    placement: Placement,
    domain_of: Mapping[str, str],
    unconfirmed: frozenset[str],
) -> Counts:
    """Count members by domain; hosts in no domain count for nothing."""
    surely: Counter[str] = Counter()
    at_most: Counter[str] = Counter()
    running = unknown = 0
    for peer in vms:
        if peer == vm:
            continue
        if peer in unconfirmed:
            unknown += 1
            continue
        hosts = placement.occupied(peer)
        domains = {domain_of.get(host) for host in hosts}
        running += bool(hosts)
        at_most.update(domain for domain in domains if domain is not None)
        if len(domains) == 1 and (only := next(iter(domains))) is not None:
            surely[only] += 1
    return Counts(surely, at_most, running, unknown)


def eligible_domains(snapshot: Snapshot, found: Resolved) -> frozenset[str]:
    """By hard host rules and pinning: a host counts where any member may run on it."""
    bounds = {_key(bound): bound for bound in _bounds(snapshot, found.vms)}.values()
    draining = frozenset(snapshot.draining_hosts)
    cluster = snapshot.hosts_of_cluster.get(found.cluster or "", ())
    hosts = (host for host in cluster if host.up and host.id not in draining)
    return frozenset(
        found.domain_of[host.id]
        for host in hosts
        if host.id in found.domain_of and any(_is_open(snapshot, host, bound) for bound in bounds)
    )


def _bounds(snapshot: Snapshot, vms: tuple[str, ...]) -> Iterator[_Bounds]:
    groups = hard_host_groups_of(snapshot)
    for vm in vms:
        yield groups.get(vm, ()), snapshot.vm_by_id[vm].bound_to


def _key(bound: _Bounds) -> tuple[object, ...]:
    groups, hosts = bound
    return tuple(group.id for group in groups), hosts


def _is_open(snapshot: Snapshot, host: Host, bound: _Bounds) -> bool:
    groups, hosts = bound
    return (hosts is None or host.id in hosts) and all(
        (host.id in listed_hosts(snapshot, group)) is group.hosts_rule.positive
        for group in groups
        if configured(snapshot, group)
    )
