"""A cluster as it is drawn: hosts as cells, VMs in them, their groups, what is violated and what moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.violations import ViolationsDocument
from ovirt_placement.lookups.differences import differing_in_pending, exchanged_vms, same_members
from ovirt_placement.model import Cluster, Snapshot, Vm
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
    #: The failure domain that it is in, as a rack; empty where none is known.
    domain: str = ""


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
    #: The engine's word; absent of one that is up, as most of ten thousand are.
    status: str = "up"
    #: Numbers of hosts, in the order of `hosts`; absent where it runs on none of them.
    host: int | None = None
    #: Where it is on its way to.
    to: int | None = None
    #: Numbers of groups, in the order of `groups`.
    groups: tuple[int, ...] = ()
    #: Whether it stands wrong by a rule: "hard" or "soft".
    wrong: str = ""
    memory_mb: int = 0
    vcpus: int = 0


class MapDocument(Document, frozen=True, kw_only=True, tag="map"):
    """A cluster as it is drawn."""

    cluster: Named
    #: The state that this is drawn of; a higher number is newer.
    number: int
    hosts: tuple[MapHost, ...]
    groups: tuple[MapGroup, ...]
    vms: tuple[MapVm, ...]


class _Pen:
    """Draws the VMs of one state."""

    def __init__(
        self,
        snapshot: Snapshot,
        cluster: Cluster,
        violations: ViolationsDocument,
        domains: Mapping[str, str],
    ) -> None:
        self._snapshot = snapshot
        self._domains = domains
        hosts = snapshot.hosts_of_cluster.get(cluster.id, ())
        self.hosts = sorted(hosts, key=lambda host: (domains.get(host.id, ""), host.name, host.id))
        self.groups = [group for group in snapshot.affinity_groups if group.cluster == cluster.id]
        self._place = {host.id: at for at, host in enumerate(self.hosts)}
        self._group = {group.id: at for at, group in enumerate(self.groups)}
        self.wrong = {
            offender.id: "hard" if found.hard else "soft"
            for found in sorted(violations.violations, key=lambda found: found.hard)
            for offender in found.offenders
        }
        self._violated = {group.id for found in violations.violations for group in found.groups}

    def vms(self) -> tuple[MapVm, ...]:
        """All that have a place, by name."""
        drawn = map(self.vm, sorted(self._snapshot.vms, key=lambda vm: (vm.name, vm.id)))
        return tuple(vm for vm in drawn if vm is not None)

    def vm(self, vm: Vm) -> MapVm | None:
        """None if it has no place in this cluster."""
        runs, to = self._place.get(vm.host or ""), None
        if ways := self._snapshot.pending_hosts.get(vm.id):
            to = next((self._place[way] for way in ways if way in self._place), None)
        if runs is None and to is None:
            return None
        groups = self._snapshot.groups_of_vm.get(vm.id, ())
        own = tuple(self._group[group.id] for group in groups if group.id in self._group)
        wrong = self.wrong.get(vm.id, "")
        return MapVm(vm.id, vm.name, vm.status, runs, to, own, wrong, vm.memory_mb, vm.vcpus)

    def document(self, cluster: Cluster, number: int, vms: tuple[MapVm, ...]) -> MapDocument:
        return MapDocument(
            cluster=Named(cluster.id, cluster.name),
            number=number,
            hosts=tuple(
                MapHost(
                    host.id,
                    host.name,
                    host.status,
                    host.memory_mb,
                    host.free_mb,
                    host.cpu_percent,
                    self._domains.get(host.id, ""),
                )
                for host in self.hosts
            ),
            groups=tuple(MapGroup(group.id, group.name, group.id in self._violated) for group in self.groups),
            vms=vms,
        )


_NONE: Mapping[str, str] = {}


def cluster_map(
    snapshot: Snapshot,
    cluster: Cluster,
    violations: ViolationsDocument,
    number: int,
    domains: Mapping[str, str] = _NONE,
) -> MapDocument:
    """Hosts by failure domain and name, and in them VMs by name; VMs that are down have no place on a map.

    `domains` has the failure domains of hosts, by id.
    """
    pen = _Pen(snapshot, cluster, violations, domains)
    return pen.document(cluster, number, pen.vms())


class Drawn(NamedTuple):
    """A map, and the state that it is of."""

    snapshot: Snapshot
    document: MapDocument

    def redrawn(
        self,
        snapshot: Snapshot,
        cluster: Cluster,
        violations: ViolationsDocument,
        number: int,
        domains: Mapping[str, str] = _NONE,
    ) -> MapDocument:
        """What `cluster_map` draws of a later state, at the cost of what has changed where that is little."""
        pen = _Pen(snapshot, cluster, violations, domains)
        vms = self._changed(snapshot, pen)
        return pen.document(cluster, number, pen.vms() if vms is None else vms)

    def _changed(self, snapshot: Snapshot, pen: _Pen) -> tuple[MapVm, ...] | None:
        """The VMs of the later map; None if one comes, goes or is renamed, or if places or groups change."""
        before, exchanged = self.document, exchanged_vms(self.snapshot, snapshot)
        if exchanged is None or not same_members(self.snapshot, snapshot, exchanged):
            return None
        if [host.id for host in before.hosts] != [host.id for host in pen.hosts]:
            return None
        wrong = {vm.id: vm.wrong for vm in before.vms if vm.wrong}
        otherwise_wrong = {vm for vm, _ in wrong.items() ^ pen.wrong.items()}
        places = {vm.id: at for at, vm in enumerate(before.vms)}
        vms = list(before.vms)
        for name in exchanged.keys() | differing_in_pending(self.snapshot, snapshot) | otherwise_wrong:
            vm, at = snapshot.vm_by_id.get(name), places.get(name)
            drawn = None if vm is None else pen.vm(vm)
            if (drawn is None) != (at is None) or (at is not None and drawn and drawn.name != vms[at].name):
                return None
            if at is not None and drawn is not None:
                vms[at] = drawn
        return tuple(vms)
