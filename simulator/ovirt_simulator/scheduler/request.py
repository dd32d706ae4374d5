"""What the scheduler is asked: VMs that need one host, and the hosts that may be considered."""

from __future__ import annotations

import msgspec

from ovirt_placement.model import Host, Snapshot, Vm


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """VMs to place together on one host: a single one, or those that hard positive groups tie together."""

    vm_ids: tuple[str, ...]
    #: Hosts that are out of the question: the source of a migration, targets that failed before.
    blacklist: frozenset[str] = frozenset()
    #: The only hosts in question; empty means all.
    whitelist: frozenset[str] = frozenset()
    #: The id of the cluster whose hosts are in question; None for that of the first VM.
    cluster: str | None = None
    #: The engine's ignoreHardVmToVmAffinity: the filter of rules between VMs is not asked.
    without_vm_affinity: bool = False

    def vms(self, snapshot: Snapshot) -> tuple[Vm, ...]:
        return tuple(snapshot.vm_by_id[vm_id] for vm_id in self.vm_ids)

    def candidates(self, snapshot: Snapshot) -> tuple[Host, ...]:
        """Give the cluster's hosts that are up and in question, by their ids (getVdsForClusterWithStatus)."""
        cluster = self.cluster or snapshot.vm_by_id[self.vm_ids[0]].cluster
        hosts = (
            host
            for host in snapshot.hosts_of_cluster.get(cluster, ())
            if host.up and host.id not in self.blacklist and (not self.whitelist or host.id in self.whitelist)
        )
        return tuple(sorted(hosts, key=by_id))


def by_id(host: Host) -> str:
    """Give what the engine's database sorts hosts by."""
    return host.id
