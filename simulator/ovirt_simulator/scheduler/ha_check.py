"""The engine's HA reservation check: an alert when one host's failure could not be survived.

Source: the engine's HaReservationHandling, as it behaves: first fit, one host at a time; hosts come by their
ids, VMs in the records' order.
"""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.model import Cluster, Host, Snapshot, Vm

from ..core.backend import Backend
from ..core.entities import SYSTEM
from ..core.event_codes import EventCode
from ..core.vm_memory import required_without_huge_pages_mb
from .java.numbers import math_round
from .peers import coming_to, cpus
from .request import by_id


class HaCheck:
    """Reports to the audit log when a cluster fails the check, and when it passes it again."""

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
    up = sorted((host for host in snapshot.hosts_of_cluster.get(cluster.id, ()) if host.up), key=by_id)
    if len(up) == 1:
        return tuple(up)
    free = {host.id: _free(snapshot, host) for host in up}
    return tuple(host for host in up if not _survives(snapshot, cluster, host, free))


def _free(snapshot: Snapshot, host: Host) -> tuple[int, int]:
    """Give the memory in MiB and the CPU in percent that the check takes for free.

    What is pending there is deducted twice: the memory that the host may hand out is without it already.
    """
    pending = sum(map(required_without_huge_pages_mb, coming_to(snapshot, host)))
    return host.free_mb - pending, 0 if host.cpu_percent is None else 100 - int(host.cpu_percent)


def _survives(
    snapshot: Snapshot, cluster: Cluster, failing: Host, free: Mapping[str, tuple[int, int]]
) -> bool:
    left = {host_id: room for host_id, room in free.items() if host_id != failing.id}
    for vm in snapshot.vms_of_host.get(failing.id, ()):
        if not vm.ha or vm.cluster != cluster.id:
            continue
        memory, percent = _need(snapshot, vm, failing)
        home = next((h for h, room in left.items() if room[0] >= memory and room[1] >= percent), None)
        if home is None:
            return False
        left[home] = (left[home][0] - memory, left[home][1] - percent)
    return True


def _need(snapshot: Snapshot, vm: Vm, failing: Host) -> tuple[int, int]:
    """Give the memory, and the CPU in whole percents of the failing host."""
    used = math_round(vm.memory_mb * (int(vm.usage_mem_percent or 0) / 100))
    busy = int(vm.usage_cpu_percent or 0) * vm.vcpus
    return max(used, vm.guaranteed_mb), busy // cpus(failing, snapshot)
