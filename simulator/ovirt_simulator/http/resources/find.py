"""Looking up what an address or a body speaks of, or refusing as the engine does when it is not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from ovirt_simulator.core.entities import Cluster, DataCenter, Vm
from ovirt_simulator.http.answers import absent, fault
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call

Found = TypeVar("Found")


def present(found: Found | None) -> Found:
    """Give what was found; refuse with 404 and an empty body when it is None."""
    if found is None:
        raise absent()
    return found


def visible_vm(call: Call, vm_id: str) -> Vm:
    """Give a VM that the user can see."""
    vm = present(call.queries.vm(vm_id))
    if call.filtered and vm.id not in call.user.vms:
        raise absent()
    return vm


def visible_clusters(call: Call) -> tuple[Cluster, ...]:
    """Give the clusters that the user can see: all, or those of its VMs."""
    clusters = call.queries.clusters()
    if not call.filtered:
        return clusters
    of_vms = {vm.cluster for vm in _own_vms(call)}
    return tuple(cluster for cluster in clusters if cluster.id in of_vms)


def visible_data_centers(call: Call) -> tuple[DataCenter, ...]:
    """Give the data centers that the user can see: all, or those of its clusters."""
    data_centers = call.queries.data_centers()
    if not call.filtered:
        return data_centers
    of_clusters = {cluster.data_center for cluster in visible_clusters(call)}
    return tuple(each for each in data_centers if each.id in of_clusters)


def _own_vms(call: Call) -> list[Vm]:
    """Give the VMs that a user who is no admin has permissions on."""
    vms = (call.queries.vm(vm_id) for vm_id in call.user.vms)
    return [vm for vm in vms if vm is not None]


class Named(Protocol):
    """What a body can name by its id or by its name."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


def named(reference: Body, records: Iterable[Named]) -> str:
    """Give the id of what a body refers to by id or name; 404 for an unknown name."""
    if reference.id is not None:
        return reference.id
    name = reference.text("name")
    for record in records:
        if record.name == name:
            return record.id
    raise fault(404, f"Entity not found: {name}")


def host_id(call: Call, reference: Body) -> str | None:
    """Give the id of a host that a body names by id or name; an unknown name is refused with 404."""
    if reference.id is not None:
        return reference.id
    name = reference.text("name")
    if name is None:
        return None
    for host in call.queries.hosts():
        if host.name == name:
            return host.id
    raise fault(404, f"Entity not found: {name}")


def cluster_id(call: Call, reference: Body | None) -> str | None:
    """Give the id of a cluster that a body names by id or name, if it does; 404 for an unknown name."""
    if reference is None or reference.id is not None:
        return None if reference is None else reference.id
    name = reference.text("name")
    if name is None:
        return None
    for cluster in call.queries.clusters():
        if cluster.name == name:
            return cluster.id
    raise fault(404, f"Entity not found: Cluster: name={name}")
