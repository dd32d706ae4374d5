"""Which highly available VMs a check is about: those on hosts that are up. The others are named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record


class Outside(Record, frozen=True):
    """A VM that nobody protects now: it is down, or nobody knows what it does."""

    vm: str
    #: The REST API's words.
    status: str
    #: The host that it stands on, and that is not up.
    host: str | None = None
    host_status: str | None = None


def protected(snapshot: Snapshot, hosts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Highly available VMs by the host that they would be lost with."""
    return {host: tuple(vm.id for vm in snapshot.vms_of_host.get(host, ()) if vm.ha) for host in hosts}


def outside(snapshot: Snapshot, cluster_id: str) -> Iterator[Outside]:
    """Highly available VMs of a cluster that run nowhere yet, or on a host that is not up."""
    for vm in snapshot.vms:
        if vm.cluster == cluster_id and vm.ha:
            host = snapshot.host_by_id.get(vm.host or "")
            if host is None:
                yield Outside(vm.id, vm.status)
            elif not host.up:
                yield Outside(vm.id, vm.status, host.id, host.status)
