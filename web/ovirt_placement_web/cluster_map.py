"""A cluster as it is drawn: hosts as cells, VMs in them, their groups, what is violated and what moves."""

from __future__ import annotations

from collections import defaultdict

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.violations import ViolationsDocument
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record


class MapHost(Record, frozen=True, omit_defaults=True):
    """A cell."""

    id: str
    name: str
    status: str
    memory_mb: int
    free_mb: int
    #: Used, 0 to 100; absent where that is not known.
    cpu_percent: float | None = None


class MapGroup(Record, frozen=True, omit_defaults=True):
    """An affinity group of VMs."""

    id: str
    name: str
    #: Whether a rule of it is violated.
    violated: bool = False


class MapVm(Record, frozen=True, omit_defaults=True):
    """A VM that runs on a host of the cluster, or is on its way there."""

    id: str
    name: str
    status: str
    #: Numbers of hosts, in the order of `hosts`; absent where it runs on none of them.
    host: int | None = None
    #: Where it is on its way to.
    to: int | None = None
    #: Numbers of groups, in the order of `groups`.
    groups: tuple[int, ...] = ()
    #: Whether it stands wrong by a rule: "hard" or "soft".
    wrong: str = ""


class MapDocument(Document, frozen=True, kw_only=True, tag="map"):
    """A cluster as it is drawn."""

    cluster: Named
    #: The state that this is drawn of; a higher number is newer.
    number: int
    hosts: tuple[MapHost, ...]
    groups: tuple[MapGroup, ...]
    vms: tuple[MapVm, ...]


def cluster_map(
    snapshot: Snapshot, cluster: Cluster, violations: ViolationsDocument, number: int
) -> MapDocument:
    """Hosts by name, and in them VMs by name; VMs that are down have no place on a map."""
    hosts = sorted(snapshot.hosts_of_cluster.get(cluster.id, ()), key=lambda host: (host.name, host.id))
    place = {host.id: at for at, host in enumerate(hosts)}
    groups = [group for group in snapshot.affinity_groups if group.cluster == cluster.id]
    of_vm: dict[str, list[int]] = defaultdict(list)
    for at, group in enumerate(groups):
        for member in snapshot.group_vms[group.id]:
            of_vm[member].append(at)
    wrong = {
        offender.id: "hard" if found.hard else "soft"
        for found in sorted(violations.violations, key=lambda found: found.hard)
        for offender in found.offenders
    }
    violated = {group.id for found in violations.violations for group in found.groups}
    vms = []
    for vm in sorted(snapshot.vms, key=lambda vm: (vm.name, vm.id)):
        runs = place.get(vm.host or "")
        to = next((place[each] for each in snapshot.pending_hosts.get(vm.id, ()) if each in place), None)
        if runs is not None or to is not None:
            own = tuple(of_vm.get(vm.id, ()))
            vms.append(MapVm(vm.id, vm.name, vm.status, runs, to, own, wrong.get(vm.id, "")))
    return MapDocument(
        cluster=Named(cluster.id, cluster.name),
        number=number,
        hosts=tuple(
            MapHost(host.id, host.name, host.status, host.memory_mb, host.free_mb, host.cpu_percent)
            for host in hosts
        ),
        groups=tuple(MapGroup(group.id, group.name, group.id in violated) for group in groups),
        vms=tuple(vms),
    )
