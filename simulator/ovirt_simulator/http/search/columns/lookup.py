"""Looks up what columns show of other records: names of clusters and hosts, counts, measured figures."""

from __future__ import annotations

from typing import Any

from ovirt_simulator.core.entities import Cluster, Host, HostSummary, Vm
from ovirt_simulator.core.images import BLANK_TEMPLATE, Template
from ovirt_simulator.core.queries import Queries
from ovirt_simulator.core.vm_pool import VmPool

#: What the engine counts for a VM besides its memory.
_OVERHEAD_MB = 65
_HIGHEST_SCORE = 3400


class Lookup:
    """Answers for one search."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def cluster(self, cluster_id: str) -> Cluster | None:
        return self._queries.cluster(cluster_id)

    def cluster_name(self, cluster_id: str) -> str | None:
        cluster = self.cluster(cluster_id)
        return None if cluster is None else cluster.name

    def vms_of(self, pool: VmPool) -> list[Vm]:
        return [vm for vm in self._queries.vms() if vm.pool == pool.id]

    def pool_name(self, vm: Vm) -> str | None:
        return next((pool.name for pool in self._queries.vm_pools() if pool.id == vm.pool), None)

    def compatibility(self, cluster_id: str) -> str | None:
        cluster = self.cluster(cluster_id)
        return None if cluster is None else cluster.compatibility

    def data_center(self, cluster_id: str) -> str | None:
        cluster = self.cluster(cluster_id)
        return None if cluster is None else self.data_center_name(cluster.data_center)

    def data_center_name(self, data_center_id: str | None) -> str | None:
        found = None if data_center_id is None else self._queries.data_center(data_center_id)
        return None if found is None else found.name

    def host_name(self, host_id: str | None) -> str | None:
        host = None if host_id is None else self._queries.host(host_id)
        return None if host is None else host.name

    def vm_name(self, vm_id: str) -> str | None:
        vm = self._queries.vm(vm_id)
        return None if vm is None else vm.name

    def uptime(self, vm: Vm) -> int:
        return int((self._queries.now - vm.started).total_seconds()) if vm.started and vm.runs else 0

    def vms_made_from(self, template: Template) -> int:
        return sum((vm.template or BLANK_TEMPLATE) == template.id for vm in self._queries.vms())

    def mac_address(self, nic_id: str) -> str:
        return self._queries.mac_address(nic_id)

    def summary(self, host: Host) -> HostSummary:
        return self._queries.host_summary(host.id)

    def statistic(self, host: Host, name: str) -> Any:
        found = (one for one in self._queries.host_statistics(host.id) if one.name == name)
        return next((value for one in found for value in one.values), 0)

    def memory_percent(self, host: Host) -> int:
        used, total = self.statistic(host, "memory.used"), self.statistic(host, "memory.total")
        return int(used * 100 // total) if total else 0

    def committed_mb(self, host: Host) -> int:
        vms = (vm for vm in self._queries.vms() if vm.host == host.id)
        return sum(vm.memory_mb + _OVERHEAD_MB for vm in vms)

    def ha_score(self, host: Host) -> int:
        """Give what the host's HA agent says of it; only where the hosted engine can run is there one."""
        clusters = {vm.cluster for vm in self._queries.vms() if vm.hosted_engine}
        return _HIGHEST_SCORE if host.cluster in clusters and host.status != "maintenance" else 0

    def first_data_center(self) -> str | None:
        return next((one.name for one in self._queries.data_centers()), None)

    def network_of(self, profile_id: str | None) -> str | None:
        profiles = {profile.id: profile.network for profile in self._queries.vnic_profiles()}
        networks = {network.id: network.name for network in self._queries.networks()}
        return None if profile_id is None else networks.get(profiles.get(profile_id, ""))
