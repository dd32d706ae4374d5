"""VMs whose placement keys refuse the host that they run on, as constraints: on a host that these accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.legality import filters_of, request_for, why_immovable
from ovirt_placement.rules.affinity.on_hosts import OnHosts
from ovirt_placement.rules.placement_keys import key_filter


class OnAcceptedHosts(OnHosts, frozen=True, kw_only=True):
    """One VM, and the hosts that its keys accept as things stand."""

    family: ClassVar[str] = "placement_keys"
    asks: ClassVar[str] = "on a host that its placement keys accept"


def refused_by_keys(snapshot: Snapshot, cluster: str) -> Iterator[OnAcceptedHosts]:
    """Those that run where the filter, if the policy has it, would not let them come again."""
    if key_filter.RULE not in filters_of(snapshot, cluster):
        return
    hosts = tuple(host.id for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up)
    for vm in snapshot.vms:
        if vm.cluster == cluster and vm.host in hosts and why_immovable(snapshot, vm) is None:
            request = request_for(snapshot, cluster, (vm.id,), hosts)
            verdicts = key_filter.filter_hosts(snapshot, request)
            accepted = frozenset(one.host for one in verdicts if one.accepted)
            if vm.host not in accepted:
                yield OnAcceptedHosts(groups=(), vms=(vm.id,), hard=True, priority=0.0, hosts=accepted)
