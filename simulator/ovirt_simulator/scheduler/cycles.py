"""What the engine does on its own again and again: load balancing, and the check of its HA reservation.

Source: the engine's SchedulingManager (performLoadBalancing, externalRunBalance) and HaReservationHandling,
as they behave. Its own balance units do nothing here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from ovirt_placement import model

from ..core.backend import Backend
from ..core.entities import SYSTEM, Cluster, Host, Job
from ..core.events import EventCode
from ..core.rejections import Rejected
from ..core.state import State
from ..core.vm_memory import required_without_huge_pages_mb
from .external import ExternalUnits, Malformed
from .filters import by_id, coming_to, cpus
from .java import math_round


class MigrateBySystem(Protocol):
    """Begins a migration that the engine itself wants. Raises `Rejected`."""

    def __call__(self, vm_id: str, reason: str, *, hosts: Collection[str] = ()) -> Job: ...


def is_migrating(state: State, host: Host) -> bool:
    """Return whether a VM is on its way from or to the host."""
    there = (*state.vms_on(host.id), *state.incoming(host.id))
    return any(vm.status == "migrating" for vm in there)


_REASON = "Load balancing"

_log = logging.getLogger(__name__)


class LoadBalancing:
    """Asks, and migrates what it is ordered to."""

    def __init__(self, backend: Backend, external: ExternalUnits, migrate: MigrateBySystem) -> None:
        self._backend = backend
        self._external = external
        self._migrate = migrate

    def cycle(self) -> None:
        """Balance every cluster once; a policy without balance, or a malformed answer, ends it for all."""
        with self._backend.lock:
            clusters = tuple(self._backend.state.clusters.values())
        for cluster in clusters:
            try:
                self._balance(cluster)
            except (Malformed, LookupError) as error:
                _log.warning("load balancing ends at cluster %s: %s", cluster.name, error)
                return

    def _balance(self, cluster: Cluster) -> None:
        state = self._backend.state
        with self._backend.lock:
            balance = state.policies[cluster.policy_id].balance
            if balance is None:
                raise LookupError("its policy has no balance")
            unit = state.units[balance]
            hosts = [h for h in state.hosts_of(cluster.id) if h.up and not is_migrating(state, h)]
        if unit.internal or not hosts:
            return
        reply = self._external.balance(cluster, unit, hosts)
        if reply.vm is None or not reply.hosts:
            return
        try:
            self._migrate(reply.vm, _REASON, hosts=reply.hosts)
        except Rejected as refusal:
            _log.info("load balancing of %s: %s", reply.vm, refusal.detail)


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


def failed_hosts(snapshot: model.Snapshot, cluster: model.Cluster) -> tuple[model.Host, ...]:
    """Give the hosts whose HA VMs would not fit on the others; a lone host fails, whatever it runs."""
    up = sorted((host for host in snapshot.hosts_of_cluster.get(cluster.id, ()) if host.up), key=by_id)
    if len(up) == 1:
        return tuple(up)
    free = {host.id: _free(snapshot, host) for host in up}
    return tuple(host for host in up if not _survives(snapshot, cluster, host, free))


def _free(snapshot: model.Snapshot, host: model.Host) -> tuple[int, int]:
    """Give the memory in MiB and the CPU in percent that the check takes for free.

    What is pending there is deducted twice: the memory that the host may hand out is without it already.
    """
    pending = sum(map(required_without_huge_pages_mb, coming_to(snapshot, host)))
    return host.free_mb - pending, 0 if host.cpu_percent is None else 100 - int(host.cpu_percent)


def _survives(
    snapshot: model.Snapshot, cluster: model.Cluster, failing: model.Host, free: Mapping[str, tuple[int, int]]
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


def _need(snapshot: model.Snapshot, vm: model.Vm, failing: model.Host) -> tuple[int, int]:
    """Give the memory, and the CPU in whole percents of the failing host."""
    used = math_round(vm.memory_mb * (int(vm.usage_mem_percent or 0) / 100))
    busy = int(vm.usage_cpu_percent or 0) * vm.vcpus
    return max(used, vm.guaranteed_mb), busy // cpus(failing, snapshot)
