"""Notices hosts that the engine empties and that do not become empty, and shows what holds their VMs.

The engine itself passes in silence over a VM for which some external filter leaves no host, and tries the
others again for ever. Nothing is migrated here: a host that somebody deactivates is the engine's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_placement.answers.placement import why
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_service.saying import Said

#: How many VMs of a host are looked into.
_MOST_VMS: Final = 5

_log = logging.getLogger(__name__)


class DrainWatch:
    """A watcher of the daemon's readings."""

    def __init__(
        self, notifications: Notifications, clock: Callable[[], float], patience_seconds: float
    ) -> None:
        """A host whose VMs stay the same for `patience_seconds` of the clock does not become empty."""
        self._notifications = notifications
        self._clock = clock
        self._patience_seconds = patience_seconds
        #: The VMs that stay, by host, and since when the same do.
        self._staying: dict[str, tuple[frozenset[str], float]] = {}
        self._said = Said()

    def look(self, snapshot: Snapshot) -> None:
        """Report hosts whose VMs have stayed for long."""
        draining = [host for host in snapshot.hosts if host.status == "preparing_for_maintenance"]
        for gone in self._staying.keys() - {host.id for host in draining}:
            del self._staying[gone]
            self._said.is_over(gone)
        for host in draining:
            if host.id not in snapshot.draining_hosts:
                self._look_at(snapshot, host)

    def _look_at(self, snapshot: Snapshot, host: Host) -> None:
        there = [vm for vm in snapshot.vms_of_host.get(host.id, ()) if vm.status != "migrating"]
        staying, now = frozenset(vm.id for vm in there), self._clock()
        before, since = self._staying.get(host.id, (None, now))
        if staying != before:
            self._staying[host.id] = staying, now
            return
        if staying and now - since >= self._patience_seconds:
            self._report(snapshot, host, there)

    def _report(self, snapshot: Snapshot, host: Host, there: Sequence[Vm]) -> None:
        reason = "; ".join(_why(snapshot, vm) for vm in there[:_MOST_VMS])
        if len(there) > _MOST_VMS:
            reason += f"; and {len(there) - _MOST_VMS} more VMs"
        if not self._said.is_news(host.id, reason):
            return
        cluster = snapshot.cluster_by_id[host.cluster]
        _log.warning("host %s does not arrive in maintenance: %s", host.name, reason)
        self._notifications.report(
            NoticeKind.DRAIN_BLOCKED,
            cluster_id=cluster.id,
            cluster=cluster.name,
            host=host.name,
            reason=reason,
        )


def _why(snapshot: Snapshot, vm: Vm) -> str:
    """What keeps a VM where it is: itself, or each other host that is up; else somebody else's filter."""
    if not vm.migratable:
        return f"{vm.name} cannot migrate"
    others = [host for host in snapshot.hosts_of_cluster[vm.cluster] if host.up and host.id != vm.host]
    judged = why(snapshot, vm, others).hosts
    if not judged:
        return f"no other host is up for {vm.name}"
    refused = [one for one in judged if not one.accepted]
    if len(refused) < len(judged):
        return f"{vm.name}, for which no known rule is the reason"
    sentences = (f"{one.host.name}: {one.reasons[0].sentence}" for one in refused if one.reasons)
    return f"{vm.name} ({', '.join(sentences)})"
