"""The engine as it was read last, part by part: no older answer takes the place of a newer one."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec.structs import replace

from ovirt_placement.engine.clusters import with_failover_hosts
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.engine.topology import consistent
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import (
    NEVER,
    NO_DEMANDS,
    Demands,
    Details,
    KnownDetails,
    KnownSearches,
    Needed,
    Networks,
    Span,
    Statistics,
    needed,
)
from ovirt_placement.inventory.service.events import Crashes, MigrationTargets
from ovirt_placement.inventory.service.schedule import ReconciliationScope, Subject, SubjectKind
from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Host, MemberSearch, Snapshot, Vm
from ovirt_placement.rules.doubts import Believed, believed

_Record = TypeVar("_Record")


class Table(Generic[_Record]):
    """Records by id, each with the span of its reading; also of those that were gone then."""

    def __init__(self) -> None:
        self.records: dict[str, _Record] = {}
        self._read: dict[str, Span] = {}
        #: Of the last reading of all.
        self._all = NEVER

    def accepts(self, identity: str, span: Span) -> bool:
        """Whether a reading of this one is newer than what is known of it, for certain."""
        return span.began >= max(self._read.get(identity, NEVER).ended, self._all.ended)

    def put(self, identity: str, record: _Record | None, span: Span) -> bool:
        """Take one that was read by itself, or None if it is gone; whether it was accepted."""
        if not self.accepts(identity, span):
            return False
        self._read[identity] = span
        if record is None:
            self.records.pop(identity, None)
        else:
            self.records[identity] = record
        return True

    def put_all(self, records: Mapping[str, _Record], span: Span) -> tuple[str, ...]:
        """Take a reading of all; return those that were read by themselves meanwhile.

        One whose reading began later stays as it is. Of these, and of those whose readings began before and
        ended after this one began, only reading again can say what is newer.
        """
        meanwhile = tuple(identity for identity, read in self._read.items() if read.ended > span.began)
        younger = [identity for identity in meanwhile if self._read[identity].began > span.began]
        before = {identity: self.records.get(identity) for identity in younger}
        self.records = dict(records)
        for identity, record in before.items():
            if record is None:
                self.records.pop(identity, None)
            else:
                self.records[identity] = record
        self._read = {identity: self._read[identity] for identity in younger}
        self._all = span
        return meanwhile


#: A cluster, with its affinity groups.
_Grouped = tuple[Cluster, tuple[AffinityGroup, ...]]


@dataclass(frozen=True)
class Reading:
    """What one larger reading found; None for what it did not ask."""

    began: float
    whole: Snapshot | None = None
    hosts: tuple[Host, ...] | None = None
    statistics: Statistics | None = None
    details: Details | None = None
    searches: tuple[MemberSearch, ...] | None = None

    @property
    def scope(self) -> ReconciliationScope:
        """How much it took in: the parts have the names of the scopes."""
        return next(one for one in ReconciliationScope if getattr(self, one.name.lower()) is not None)


class View:
    """All that is known of the engine; `snapshot` makes one consistent picture of it."""

    def __init__(self, *, tagged: bool = False) -> None:
        """`tagged`: tags of hosts name failure domains."""
        self._tagged = tagged
        #: What keys and rules need.
        self.demands = NO_DEMANDS
        self._hosts: Table[Host] = Table()
        self._vms: Table[Vm] = Table()
        self._clusters: Table[_Grouped] = Table()
        #: One record each, under the empty id: they are read all at once.
        self._labels: Table[tuple[AffinityLabel, ...]] = Table()
        self._networks: Table[Networks] = Table()
        self._frame: Snapshot | None = None
        self._statistics = Statistics()
        self._details = KnownDetails()
        self._searches = KnownSearches()
        self._targets = MigrationTargets()
        self._crashes = Crashes()
        self._host_ids: dict[str, str] = {}
        self._believed: dict[str, Believed] = {}
        #: When something was read last.
        self._now = 0.0
        self._made: Snapshot | None = None

    def vm(self, vm_id: str) -> Vm | None:
        return self._vms.records.get(vm_id)

    def vms_on(self, host_id: str) -> tuple[str, ...]:
        """VMs that run on a host, and those on their way to it."""
        return tuple(vm.id for vm in self._vms.records.values() if host_id in (vm.host, vm.migrating_to))

    @property
    def cluster_ids(self) -> tuple[str, ...]:
        return tuple(self._clusters.records)

    @property
    def statistics_needed(self) -> Needed:
        clusters = (cluster for cluster, _ in self._clusters.records.values())
        return needed(clusters, tagged=self._tagged, host_tags=self.demands.host_tags)

    @property
    def statistics_lacking(self) -> Needed:
        """What is needed of statistics and tags and was not read yet, of hosts that came since as well."""
        needs, known = self.statistics_needed, self._statistics
        came = self._hosts.records.keys() - known.tags.keys() if known.read.tags else ()
        return Needed(
            hosts=needs.hosts and not known.read.hosts,
            vms=needs.vms and not known.read.vms,
            tags=needs.tags and (not known.read.tags or bool(came)),
        )

    def want(self, demands: Demands) -> None:
        """Keep, of details and searches, what is demanded now."""
        before, self.demands = self.demands, demands
        if demands.details != before.details:
            self._details.want(demands.details)
            if Detail.NICS not in demands.details:
                self._networks = Table()
            self._lay_over()
        if demands.searches != before.searches:
            self._searches.want(demands.searches)
            self._made = None

    def vms_named(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(vm.id for vm in self._vms.records.values() if vm.name in names) if names else ()

    def report(self, event: EngineEvent, now: float) -> None:
        """Take what an event reports about the target of a migration, or the end of a VM."""
        self._crashes.report(event)
        vm = None if event.vm is None else self._vms.records.get(event.vm)
        if vm is not None:
            self._targets.report(event, vm.name, self._host_ids, now)
            self._direct(vm)

    def put_vm(self, vm_id: str, vm: Vm | None, span: Span, *, detailed: bool = True) -> bool:
        """Take a VM that was read, with all details that are wanted or with none, or None if it is gone.

        As the others that put: whether it was newer than what was known; if not, it must be read again.
        """
        if not self._vms.accepts(vm_id, span):
            return False
        newer = True
        if vm is not None:
            newer = not detailed or self._details.put(vm, span)
            vm = self._complete(vm, span.began)
        else:
            self._crashes.forget(vm_id)
        if vm != self._vms.records.get(vm_id):
            self._made = None
        self._vms.put(vm_id, vm, span)
        return newer

    def put_host(self, host_id: str, host: Host | None, span: Span) -> bool:
        """Take a host that was read, or None if it is gone."""
        if host is not None:
            host = self._statistics.of_host(host)
        before = self._hosts.records.get(host_id)
        accepted = self._hosts.put(host_id, host, span)
        if accepted and host != before:
            self._made = None
            self._name_hosts()
        return accepted

    def put_cluster(self, cluster_id: str, found: _Grouped | None, span: Span) -> bool:
        """Take a cluster that was read with its affinity groups, or None if it is gone."""
        self._made = None
        return self._clusters.put(cluster_id, found, span)

    def put_labels(self, labels: tuple[AffinityLabel, ...], span: Span) -> bool:
        self._made = None
        return self._labels.put("", labels, span)

    def put_networks(self, found: Networks, span: Span) -> bool:
        self._made = None
        return Detail.NICS not in self.demands.details or self._networks.put("", found, span)

    def has_unknown_profile(self, vm: Vm) -> bool:
        """Whether networks must be read again, for the VM has a vNIC profile that is not known."""
        profiles = {None, *(profile.id for profile in self._known_networks[1])}
        return any(nic.vnic_profile not in profiles for nic in vm.nics)

    @property
    def _known_networks(self) -> Networks:
        return self._networks.records.get("", ((), ()))

    def absorb(self, reading: Reading, now: float) -> tuple[Subject, ...]:
        """Take a larger reading; return what was read by itself meanwhile, which must be read again."""
        again: list[Subject] = []
        self._made = None
        span, self._now = Span(reading.began, now), now
        if reading.statistics is not None:
            self._statistics = reading.statistics
            self._lay_over()
        if reading.details is not None:
            self._details.put_all(reading.details, span)
            if Detail.NICS in reading.details.read & self.demands.details:
                found = self._networks.put_all({"": reading.details.networks}, span)
                again += [Subject(SubjectKind.NETWORKS) for _ in found]
            self._lay_over()
        if reading.searches is not None:
            self._searches.put(reading.searches)
        hosts = reading.hosts if reading.whole is None else reading.whole.hosts
        if hosts is not None:
            measured = {host.id: self._statistics.of_host(host) for host in hosts}
            again += [Subject(SubjectKind.HOST, host) for host in self._hosts.put_all(measured, span)]
            self._name_hosts()
        if reading.whole is not None:
            completed = {vm.id: self._complete(vm, span.began) for vm in reading.whole.vms}
            again += [Subject(SubjectKind.VM, vm) for vm in self._vms.put_all(completed, span)]
            again += self._surround(reading.whole, span)
        again += [Subject(SubjectKind.VM, vm) for vm in self._details.missed(self._vms.records)]
        return tuple(again)

    def snapshot(self) -> Snapshot:
        """Return what is known as one picture; the same object until something changes."""
        if self._made is None:
            frame = self._frame
            if frame is None:
                raise LookupError("nothing was read yet")
            clusters = self._clusters.records.values()
            reported = replace(
                frame,
                clusters=tuple(cluster for cluster, _ in clusters),
                hosts=tuple(self._hosts.records.values()),
                vms=tuple(self._vms.records.values()),
                affinity_groups=tuple(group for _, groups in clusters for group in groups),
                affinity_labels=self._labels.records.get("", ()),
                networks=self._known_networks[0],
                vnic_profiles=self._known_networks[1],
                member_searches=self._searches.found,
            )
            made = consistent(with_failover_hosts(reported))
            self._made = believed(made, self._believed, self._now)
        return self._made

    def _surround(self, whole: Snapshot, span: Span) -> tuple[Subject, ...]:
        """Take what seldom changes."""
        groups: dict[str, list[AffinityGroup]] = {cluster.id: [] for cluster in whole.clusters}
        for group in whole.affinity_groups:
            groups.setdefault(group.cluster, []).append(group)
        grouped = {cluster.id: (cluster, tuple(groups[cluster.id])) for cluster in whole.clusters}
        self._frame = replace(
            whole, clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=(), pending=()
        )
        return (
            *(Subject(SubjectKind.CLUSTER, cluster) for cluster in self._clusters.put_all(grouped, span)),
            *(Subject(SubjectKind.LABELS) for _ in self._labels.put_all({"": whole.affinity_labels}, span)),
        )

    def _complete(self, vm: Vm, began: float) -> Vm:
        """Add to a VM what was reported and measured of it elsewhere."""
        self._targets.read(vm, began)
        return self._directed(self._details.of_vm(self._statistics.of_vm(vm)))

    def _lay_over(self) -> None:
        """Add to all hosts and VMs what was measured and read of them elsewhere."""
        hosts, vms = self._hosts.records, self._vms.records
        hosts.update((host.id, self._statistics.of_host(host)) for host in list(hosts.values()))
        vms.update((vm.id, self._details.of_vm(self._statistics.of_vm(vm))) for vm in list(vms.values()))
        self._made = None

    def _direct(self, vm: Vm) -> None:
        directed = self._directed(vm)
        if directed is not vm:
            self._vms.records[vm.id] = directed
            self._made = None

    def _directed(self, vm: Vm) -> Vm:
        """The VM with what only events report of it."""
        target, crashed = self._targets.target_host(vm.id), self._crashes.include(vm)
        if (vm.migrating_to, vm.crashed) == (target, crashed):
            return vm
        return replace(vm, migrating_to=target, crashed=crashed)

    def _name_hosts(self) -> None:
        self._host_ids = {host.name: host.id for host in self._hosts.records.values()}
