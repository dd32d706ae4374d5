"""Failure domains that members can be in at all: with a host that is up, stays up, and is open to them."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import AffinityGroup, Host, Snapshot
from ovirt_placement.rules.affinity.host_groups import configured, hard_host_groups_of, listed_hosts
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.reasons import ReasonKind

HOST_IN_NO_DOMAIN = ReasonKind("host_in_no_domain", "this host is in no failure domain of {group}", veto=True)

#: The hard host rules of a VM, and the hosts that it is pinned to.
_Bounds = tuple[tuple[AffinityGroup, ...], frozenset[str] | None]


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
