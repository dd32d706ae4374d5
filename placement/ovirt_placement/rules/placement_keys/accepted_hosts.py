"""VMs whose placement keys refuse the host that they run on, as constraints: on a host that these accept.

What keys accept hangs on where all other VMs are, so such a constraint is satisfied for the moment only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.host_groups import OnHosts
from ovirt_placement.rules.mobility import why_immovable
from ovirt_placement.rules.placement_keys.placing import filter_hosts
from ovirt_placement.rules.placement_keys.settings import settings_of
from ovirt_placement.rules.verdict import Request


class OnAcceptedHosts(OnHosts, frozen=True, kw_only=True):
    """One VM, and the hosts that its keys accept as things stand."""

    family: ClassVar[str] = "placement_keys"
    asks: ClassVar[str] = "on a host that its placement keys accept"


def on_accepted_hosts(snapshot: Snapshot, cluster: str) -> Iterator[OnAcceptedHosts]:
    """One for each VM that may be migrated and would not be let in again where it runs."""
    hosts = tuple(host.id for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up)
    parameters = snapshot.cluster_by_id[cluster].scheduling_properties
    for vm in snapshot.vms:
        if vm.cluster == cluster and vm.host in hosts and why_immovable(snapshot, vm) is None:
            request = Request((vm.id,), hosts, parameters=parameters)
            verdicts = filter_hosts(snapshot, request, settings_of(parameters), explained=False)
            accepted = frozenset(one.host for one in verdicts if one.accepted)
            if vm.host not in accepted:
                yield OnAcceptedHosts(groups=(), vms=(vm.id,), hard=True, priority=0.0, hosts=accepted)
