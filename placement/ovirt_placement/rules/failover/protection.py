"""Which highly available VMs would be lost with a host, which are lost already, and which rest by intent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.mobility import LEAVABLE

#: Stands for the host of VMs that are lost and on no host that is known.
NOWHERE: Final = ""


class Outside(Record, frozen=True):
    """A VM that is down, as its user or administrator wants it: no failure concerns it."""

    vm: str
    #: The REST API's words.
    status: str


class Lost(Record, frozen=True):
    """A VM that crashed, is unknown, or is on a host that does not answer: lost until it runs again."""

    vm: str
    #: The REST API's words.
    status: str
    #: The host that it was on, and that host's status; None where neither is known.
    host: str | None = None
    host_status: str | None = None
    #: Where it could be started now, together with all others that are lost; None where no host takes it, or
    #: where that is not known.
    home: str | None = None
    #: Whether the budget ended before that was known.
    unjudged: bool = False


def protected(snapshot: Snapshot, hosts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Highly available VMs by the host that they would be lost with."""
    return {host: tuple(vm.id for vm in snapshot.vms_of_host.get(host, ()) if vm.ha) for host in hosts}


def find_lost(snapshot: Snapshot, cluster_id: str) -> tuple[Lost, ...]:
    """Highly available VMs of a cluster that do not run, though nobody has stopped them."""
    vms = (vm for vm in snapshot.vms if vm.cluster == cluster_id and vm.ha)
    return tuple(_lost(snapshot, vm) for vm in vms if is_lost(snapshot, vm))


def is_lost(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether a VM crashed, is unknown, or stands on a host that does not answer."""
    host = snapshot.host_by_id.get(vm.host or "")
    return vm.crashed or vm.status == "unknown" or (host is not None and host.status not in LEAVABLE)


def find_outside(snapshot: Snapshot, cluster_id: str) -> Iterator[Outside]:
    """Highly available VMs of a cluster that run nowhere, and are not lost."""
    for vm in snapshot.vms:
        if vm.cluster == cluster_id and vm.ha and vm.host is None and not is_lost(snapshot, vm):
            yield Outside(vm.id, vm.status)


def _lost(snapshot: Snapshot, vm: Vm) -> Lost:
    host = snapshot.host_by_id.get(vm.host or "")
    return Lost(vm.id, vm.status) if host is None else Lost(vm.id, vm.status, host.id, host.status)
