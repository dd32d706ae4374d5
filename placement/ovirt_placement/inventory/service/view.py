"""The engine as it was read last, part by part: each record replaced when it is read again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec.structs import replace

from ovirt_placement.engine.parsing.reservation import with_failover_hosts
from ovirt_placement.engine.reading.consistency import Consistency
from ovirt_placement.engine.reading.detail import Detail
from ovirt_placement.engine.reading.events import Event
from ovirt_placement.inventory.on_demand.details import Details, KnownDetails
from ovirt_placement.inventory.on_demand.statistics import Needed, Statistics, needed
from ovirt_placement.inventory.service.rereads import Kind, Subject
from ovirt_placement.inventory.service.targets import Targets
from ovirt_placement.model import (
    AffinityGroup,
    AffinityLabel,
    Cluster,
    Host,
    Network,
    Snapshot,
    Vm,
    VnicProfile,
)

_Record = TypeVar("_Record", Host, Vm)


class _Table(Generic[_Record]):
    """Records by id, each with the moment at which its reading began; also of those that were gone then."""

    def __init__(self) -> None:
        self.records: dict[str, _Record] = {}
        self._read_at: dict[str, float] = {}

    def put(self, identity: str, record: _Record | None, began: float) -> None:
        self._read_at[identity] = began
        if record is None:
            self.records.pop(identity, None)
        else:
            self.records[identity] = record

    def put_all(self, records: Iterable[_Record], began: float) -> tuple[str, ...]:
        """Take a reading of all; return those that were read by themselves since it began.

        These stay as they are, for the reading of all may be older or newer: only reading again can tell.
        """
        younger = tuple(identity for identity, at in self._read_at.items() if at > began)
        before = {identity: self.records.get(identity) for identity in younger}
        self.records = {record.id: record for record in records}
        for identity, record in before.items():
            if record is None:
                self.records.pop(identity, None)
            else:
                self.records[identity] = record
        self._read_at = {identity: self._read_at[identity] for identity in younger}
        return younger


@dataclass(frozen=True)
class Reading:
    """What one larger reading found; None for what it did not ask."""

    began: float
    whole: Snapshot | None = None
    hosts: tuple[Host, ...] | None = None
    statistics: Statistics | None = None
    details: Details | None = None


@dataclass
class _Surroundings:
    """What seldom changes, and is read as a whole or a cluster at a time."""

    clusters: dict[str, Cluster] = field(default_factory=dict)
    groups: dict[str, tuple[AffinityGroup, ...]] = field(default_factory=dict)
    labels: tuple[AffinityLabel, ...] = ()
    read_at: dict[Subject, float] = field(default_factory=dict)


class View:
    """All that is known of the engine; `snapshot` makes one consistent picture of it."""

    def __init__(self, *, tagged: bool = False) -> None:
        """`tagged`: tags of hosts name failure domains."""
        self._tagged = tagged
        self._hosts: _Table[Host] = _Table()
        self._vms: _Table[Vm] = _Table()
        self._around = _Surroundings()
        self._frame: Snapshot | None = None
        self._statistics = Statistics()
        self._details = KnownDetails()
        self._targets = Targets()
        self._host_ids: dict[str, str] = {}
        self._consistency = Consistency()
        self._made: Snapshot | None = None

    def vm(self, vm_id: str) -> Vm | None:
        return self._vms.records.get(vm_id)

    def vms_on(self, host_id: str) -> tuple[str, ...]:
        return tuple(vm.id for vm in self._vms.records.values() if vm.host == host_id)

    @property
    def cluster_ids(self) -> tuple[str, ...]:
        return tuple(self._around.clusters)

    @property
    def statistics_needed(self) -> Needed:
        return needed(self._around.clusters.values(), tagged=self._tagged)

    @property
    def details_wanted(self) -> Detail:
        return self._details.wanted

    def want_details(self, wanted: Detail) -> None:
        """Take no other details of VMs than these."""
        if wanted != self._details.wanted:
            self._details.want(wanted)
            self._lay_over()

    def vms_named(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(vm.id for vm in self._vms.records.values() if vm.name in names) if names else ()

    def tell(self, event: Event, now: float) -> None:
        """Take what an event tells of the target of a migration."""
        vm = None if event.vm is None else self._vms.records.get(event.vm)
        if vm is not None:
            self._targets.tell(event, vm.name, self._host_ids, now)
            self._direct(vm)

    def put_vm(self, vm_id: str, vm: Vm | None, began: float, *, detailed: bool = True) -> None:
        """Take a VM that was read, with all details that are wanted or with none, or None if it is gone."""
        if vm is not None:
            if detailed:
                self._details.put(vm, began)
            vm = self._complete(vm, began)
        if vm != self._vms.records.get(vm_id):
            self._made = None
        self._vms.put(vm_id, vm, began)

    def put_host(self, host_id: str, host: Host | None, began: float) -> None:
        """Take a host that was read, or None if it is gone."""
        if host is not None:
            host = self._statistics.of_host(host)
        before = self._hosts.records.get(host_id)
        self._hosts.put(host_id, host, began)
        if host != before:
            self._made = None
            self._name_hosts()

    def put_cluster(
        self, cluster_id: str, found: tuple[Cluster, tuple[AffinityGroup, ...]] | None, began: float
    ) -> None:
        """Take a cluster that was read with its affinity groups, or None if it is gone."""
        around = self._around
        around.read_at[Subject(Kind.CLUSTER, cluster_id)] = began
        if found is None:
            around.clusters.pop(cluster_id, None)
            around.groups.pop(cluster_id, None)
        else:
            around.clusters[cluster_id], around.groups[cluster_id] = found
        self._made = None

    def put_labels(self, labels: tuple[AffinityLabel, ...], began: float) -> None:
        self._around.read_at[Subject(Kind.LABELS)] = began
        self._around.labels = labels
        self._made = None

    def put_networks(
        self, networks: tuple[Network, ...], vnic_profiles: tuple[VnicProfile, ...], began: float
    ) -> None:
        self._details.put_networks(networks, vnic_profiles, began)
        self._made = None

    def has_unknown_profile(self, vm: Vm) -> bool:
        """Whether networks must be read again, for the VM has a vNIC profile that is not known."""
        return self._details.has_unknown_profile(vm)

    def absorb(self, reading: Reading) -> tuple[Subject, ...]:
        """Take a larger reading; return what was read by itself meanwhile, which must be read again."""
        again: list[Subject] = []
        self._made = None
        if reading.statistics is not None:
            self._statistics = reading.statistics
            self._lay_over()
        if reading.details is not None:
            self._details.put_all(reading.details, reading.began)
            self._lay_over()
        hosts = reading.hosts if reading.whole is None else reading.whole.hosts
        if hosts is not None:
            measured = map(self._statistics.of_host, hosts)
            again += [Subject(Kind.HOST, host) for host in self._hosts.put_all(measured, reading.began)]
            self._name_hosts()
        if reading.whole is not None:
            completed = [self._complete(vm, reading.began) for vm in reading.whole.vms]
            again += [Subject(Kind.VM, vm) for vm in self._vms.put_all(completed, reading.began)]
            again += self._surround(reading.whole, reading.began)
        again += [Subject(Kind.VM, vm) for vm in self._details.missed(self._vms.records)]
        return tuple(again)

    def snapshot(self) -> Snapshot:
        """Return what is known as one picture; the same object until something changes."""
        if self._made is None:
            frame = self._frame
            if frame is None:
                raise LookupError("nothing was read yet")
            around = self._around
            told = replace(
                frame,
                clusters=tuple(around.clusters.values()),
                hosts=tuple(self._hosts.records.values()),
                vms=tuple(self._vms.records.values()),
                affinity_groups=tuple(group for groups in around.groups.values() for group in groups),
                affinity_labels=around.labels,
                networks=self._details.networks,
                vnic_profiles=self._details.vnic_profiles,
            )
            self._made = self._consistency.of(with_failover_hosts(told))
        return self._made

    def _surround(self, whole: Snapshot, began: float) -> tuple[Subject, ...]:
        groups: dict[str, list[AffinityGroup]] = {cluster.id: [] for cluster in whole.clusters}
        for group in whole.affinity_groups:
            groups.setdefault(group.cluster, []).append(group)
        younger = tuple(subject for subject, at in self._around.read_at.items() if at > began)
        self._around = _Surroundings(
            {cluster.id: cluster for cluster in whole.clusters},
            {cluster: tuple(found) for cluster, found in groups.items()},
            whole.affinity_labels,
            {subject: self._around.read_at[subject] for subject in younger},
        )
        self._frame = replace(
            whole, clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=(), pending=()
        )
        return younger

    def _complete(self, vm: Vm, began: float) -> Vm:
        """Add to a VM what was told and measured of it elsewhere."""
        self._targets.read(vm, began)
        return _directed(self._details.of_vm(self._statistics.of_vm(vm)), self._targets)

    def _lay_over(self) -> None:
        """Add to all hosts and VMs what was measured and read of them elsewhere."""
        hosts, vms = self._hosts.records, self._vms.records
        hosts.update((host.id, self._statistics.of_host(host)) for host in list(hosts.values()))
        vms.update((vm.id, self._details.of_vm(self._statistics.of_vm(vm))) for vm in list(vms.values()))
        self._made = None

    def _direct(self, vm: Vm) -> None:
        directed = _directed(vm, self._targets)
        if directed is not vm:
            self._vms.records[vm.id] = directed
            self._made = None

    def _name_hosts(self) -> None:
        self._host_ids = {host.name: host.id for host in self._hosts.records.values()}


def _directed(vm: Vm, targets: Targets) -> Vm:
    target = targets.of(vm.id)
    return vm if vm.migrating_to == target else replace(vm, migrating_to=target)
