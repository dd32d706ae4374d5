"""The engine's HA reservation check: an alert when one host's failure could not be survived.

Source: the engine's HaReservationHandling, as it behaves: first fit in the records' order, one host at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.model import Cluster, Host, Snapshot, Vm

from ..core.backend import Backend
from ..core.entities import SYSTEM
from ..core.event_codes import EventCode


class HaCheck:
    """Tells the audit log when a cluster fails the check, and when it passes it again."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._failed: set[str] = set()

    def cycle(self) -> None:
        """Check every cluster that reserves capacity."""
        log = self._backend.audit_log.log
        with self._backend.lock:
            snapshot = self._backend.live_snapshot()
            for cluster in self._backend.state.clusters.values():
                if not cluster.ha_reservation:
                    continue
                failed = failed_hosts(snapshot, cluster)
                if failed:
                    words = {"hosts": ", ".join(host.name for host in failed)}
                    log(EventCode.CLUSTER_ALERT_HA_RESERVATION, SYSTEM, cluster=cluster, words=words)
                    self._failed.add(cluster.id)
                elif cluster.id in self._failed:
                    log(EventCode.CLUSTER_ALERT_HA_RESERVATION_DOWN, SYSTEM, cluster=cluster)
                    self._failed.discard(cluster.id)


def failed_hosts(snapshot: Snapshot, cluster: Cluster) -> tuple[Host, ...]:
    """Give the hosts whose HA VMs would not fit on the others; a lone host fails, whatever it runs."""
    up = [host for host in snapshot.hosts_of_cluster.get(cluster.id, ()) if host.up]
    if len(up) == 1:
        return tuple(up)
    return tuple(host for host in up if not _survives(snapshot, cluster, host, up))


def _survives(snapshot: Snapshot, cluster: Cluster, failing: Host, up: Sequence[Host]) -> bool:
    free_mb = {host.id: host.free_mb for host in up if host is not failing}
    free_percent = {
        host.id: 0.0 if host.cpu_percent is None else 100 - host.cpu_percent
        for host in up
        if host is not failing
    }
    for vm in snapshot.vms_of_host.get(failing.id, ()):
        if not vm.ha:
            continue
        memory, percent = _need(vm, failing, cluster)
        home = next((h for h in free_mb if free_mb[h] >= memory and free_percent[h] >= percent), None)
        if home is None:
            return False
        free_mb[home] -= memory
        free_percent[home] -= percent
    return True


def _need(vm: Vm, failing: Host, cluster: Cluster) -> tuple[int, int]:
    """Give the memory, and the CPU in whole percents of the failing host."""
    used = int(vm.memory_mb * (vm.usage_mem_percent or 0) / 100 + 0.5)
    cores = failing.threads if cluster.count_threads_as_cores and failing.threads else failing.cores
    return max(used, vm.guaranteed_mb), int((vm.usage_cpu_percent or 0) * vm.vcpus) // cores
