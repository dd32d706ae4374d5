"""The engine as it is read, part by part: no older answer takes the place of a newer one."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Generic, TypeVar, cast

from msgspec.structs import replace

from ovirt_placement.engine import topology
from ovirt_placement.engine.clusters import with_failover_hosts
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.engine.policies import PolicyReader
from ovirt_placement.engine.requests import RULES, Doubts, Kinds, kinds_of
from ovirt_placement.engine.vms import Detail, VmDetails
from ovirt_placement.inventory.on_demand import NEVER, NO_DEMANDS, Demands, KnownSearches, Span, needed
from ovirt_placement.inventory.service.events import VmReports
from ovirt_placement.inventory.service.schedule import ReconciliationScope, Subject, SubjectKind
from ovirt_placement.model import AffinityGroup, Cluster, Host, MemberSearch, Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_TAGS, Needed
from ovirt_placement.model.state_file import consistent
from ovirt_placement.rules.doubts import Believed, believed

_log = logging.getLogger(__name__)

_Record = TypeVar("_Record")


class Table(Generic[_Record]):
    """Records by id, each with the span of its reading; also of those that were gone then."""

    def __init__(self) -> None:
        self.records: dict[str, _Record] = {}
        self._read: dict[str, Span] = {}
        #: Of the last reading of all.
        self.all_read = NEVER

    def accepts(self, identity: str, span: Span) -> bool:
        """Whether a reading of this one is newer than what is known of it, for certain."""
        return span.began >= max(self._read.get(identity, NEVER).ended, self.all_read.ended)

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
        before, self.records = self.records, dict(records)
        self._read = {one: read for one in meanwhile if (read := self._read[one]).began > span.began}
        self.all_read = span
        for identity in self._read:
            if identity in before:
                self.records[identity] = before[identity]
            else:
                self.records.pop(identity, None)
        return meanwhile


#: A cluster, with its affinity groups.
_Grouped = tuple[Cluster, tuple[AffinityGroup, ...]]


@dataclass(frozen=True)
class Reading:
    """What one larger reading found; None for what it did not ask."""

    began: float
    whole: Snapshot | None = None
    hosts: tuple[Host, ...] | None = None
    statistics: topology.Statistics | None = None
    details: topology.Details | None = None
    searches: tuple[MemberSearch, ...] | None = None

    @property
    def scope(self) -> ReconciliationScope:
        """How much it took in."""
        return next(scope for scope in ReconciliationScope if getattr(self, scope) is not None)


def reread(
    connection: EngineConnection,
    policies: PolicyReader,
    kind: SubjectKind,
    ids: Sequence[str],
    wanted: Detail,
) -> tuple[Mapping[str, Any], bool]:
    """Read these of a kind, by their ids; whether VMs have the details that are wanted."""
    match kind:
        case SubjectKind.VM:
            return _reread_vms(connection, ids, wanted)
        case SubjectKind.HOST:
            return topology.reread_hosts(connection, ids), True
        case SubjectKind.CLUSTER:
            return {one: topology.reread_cluster(connection, one, policies) for one in ids}, True
        case SubjectKind.LABELS:
            return {"": topology.read_labels(connection)}, True
    return {"": topology.read_networks(connection)}, True


def _reread_vms(
    connection: EngineConnection, ids: Sequence[str], wanted: Detail
) -> tuple[Mapping[str, Vm], bool]:
    """A disk that is removed at this moment is enough for the engine to fail on all that it is to follow."""
    try:
        return topology.reread_vms(connection, ids, wanted), True
    except EngineFault as fault:
        if not wanted or fault.code != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        _log.info("reads VMs without what hangs on them, for now: %s", fault)
    return topology.reread_vms(connection, ids), False


def read_plausible(
    doubts: Doubts, connection: EngineConnection, scope: ReconciliationScope, needs: Demands, began: float
) -> Reading:
    """Make one, doubting what suddenly lacks most of what was there; raises `Implausible` besides."""
    reading = partial(read, connection, scope, needs, began)
    return doubts.confirm(reading, _kinds, lambda doubt: doubt.kinds <= RULES)


def _kinds(found: Reading) -> Kinds:
    if found.whole is not None:
        return kinds_of(found.whole)
    return {} if found.hosts is None else {"hosts": [host.id for host in found.hosts]}


def read(connection: EngineConnection, scope: ReconciliationScope, needs: Demands, began: float) -> Reading:
    """Make one of the larger readings."""
    match scope:
        case ReconciliationScope.WHOLE:
            # Policies that were remembered would undo what the follower has read since.
            return Reading(began, whole=topology.read_as_reported(connection, policies=PolicyReader()))
        case ReconciliationScope.HOSTS:
            return Reading(began, hosts=topology.read_hosts(connection))
        case ReconciliationScope.DETAILS:
            return Reading(began, details=topology.read_details(connection, needs.details))
        case ReconciliationScope.SEARCHES:
            return Reading(began, searches=topology.read_searches(connection, needs.searches))
    return Reading(began, statistics=topology.read_statistics(connection, needs.statistics))


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
        self._tables: Mapping[SubjectKind, Table[Any]] = {
            SubjectKind.HOST: self._hosts,
            SubjectKind.VM: self._vms,
            SubjectKind.CLUSTER: self._clusters,
            # One record each, under the empty id: they are read all at once.
            SubjectKind.LABELS: Table(),
            SubjectKind.NETWORKS: Table(),
        }
        self._frame: Snapshot | None = None
        self._statistics = topology.Statistics()
        #: As they were read last, of VMs by themselves or with all others.
        self._details: Table[VmDetails] = Table()
        self._searches = KnownSearches()
        self._reports = VmReports()
        self._believed: dict[str, Believed] = {}
        #: When something was read last.
        self._now = 0.0
        self._made: Snapshot | None = None

    @property
    def vms(self) -> Mapping[str, Vm]:
        return self._vms.records

    def known(self, subject: Subject) -> Any:
        """What is known of a subject; None if that is nothing."""
        return self._tables[subject.kind].records.get(subject.id)

    @property
    def cluster_ids(self) -> tuple[str, ...]:
        return tuple(self._clusters.records)

    @property
    def statistics_needed(self) -> Needed:
        clusters = (cluster for cluster, _ in self._clusters.records.values())
        return needed(clusters, self.demands.statistics, tagged=self._tagged)

    @property
    def statistics_lacking(self) -> Needed:
        """What is needed of statistics and tags and was not read yet, of hosts that came since as well."""
        needs, known = self.statistics_needed, self._statistics
        read = known.read
        if HOST_TAGS in read and self._hosts.records.keys() - known.tags.keys():
            read -= {HOST_TAGS}
        return needs - read

    def want(self, demands: Demands) -> None:
        """Keep, of details and searches, what is demanded now."""
        before, self.demands = self.demands, demands
        if demands.details != before.details:
            known = self._details.records.items() if demands.details else ()
            self._details.records = {vm: found.only(demands.details) for vm, found in known}
            if demands.details & ~before.details:
                self._details.all_read = NEVER
            self._lay_over()
        if demands.searches != before.searches:
            self._searches.want(demands.searches)
            self._made = None

    def report(self, event: EngineEvent, now: float) -> None:
        """Take what an event reports about the target of a migration, or the end of a VM."""
        vm = self.vms.get(event.vm or "")
        self._reports.report(event, vm, self._hosts.records.values(), now)
        if vm is not None and (directed := self._reports.over(vm)) is not vm:
            self._vms.records[vm.id] = directed
            self._made = None

    def forget_reports(self) -> None:
        """Forget what events have reported: the numbers of those to come say nothing about these."""
        self._reports = VmReports()

    def put(self, subject: Subject, found: Any, span: Span, *, detailed: bool = True) -> bool:
        """Take what was read of a subject, None if it is gone; a VM with all wanted details, or none.

        Whether it was newer than what was known; if not, it must be read again.
        """
        table = self._tables[subject.kind]
        if not table.accepts(subject.id, span):
            return False
        newer = True
        if isinstance(found, Vm):
            if detailed and self.demands.details:
                newer = self._details.put(found.id, VmDetails.of(found), span)
            found = self._complete(found, span.began)
        elif isinstance(found, Host):
            found = self._statistics.of_host(found)
        elif subject.kind is SubjectKind.VM:
            self._reports.forget_crash(subject.id)
        if found != table.records.get(subject.id):
            self._made = None
        table.put(subject.id, found, span)
        return newer

    def has_unknown_profile(self, vm: Vm) -> bool:
        """Whether networks must be read again, for the VM has a vNIC profile that is not known."""
        profiles = {None, *(profile.id for profile in self._known_networks[1])}
        return any(nic.vnic_profile not in profiles for nic in vm.nics)

    @property
    def _known_networks(self) -> topology.Networks:
        known = self._tables[SubjectKind.NETWORKS].records if Detail.NICS in self.demands.details else {}
        return cast("topology.Networks", known.get("", ((), ())))

    def absorb(self, reading: Reading, now: float) -> Iterator[Subject]:
        """Take a larger reading; name what was read by itself meanwhile, which must be read again."""
        self._made = None
        span, self._now = Span(reading.began, now), now
        if reading.statistics is not None:
            self._statistics = reading.statistics
            self._lay_over()
        if reading.details is not None:
            yield from self._put_details(reading.details, span)
            if Detail.NICS in reading.details.read:
                yield from self._put_all(SubjectKind.NETWORKS, {"": reading.details.networks}, span)
            self._lay_over()
        if reading.searches is not None:
            self._searches.put(reading.searches)
        whole = reading.whole
        hosts = reading.hosts if whole is None else whole.hosts
        if hosts is not None:
            measured = {host.id: self._statistics.of_host(host) for host in hosts}
            yield from self._put_all(SubjectKind.HOST, measured, span)
        if whole is not None:
            self._frame = whole
            grouped = {
                cluster.id: (
                    cluster,
                    tuple(one for one in whole.affinity_groups if one.cluster == cluster.id),
                )
                for cluster in whole.clusters
            }
            completed = {vm.id: self._complete(vm, span.began) for vm in whole.vms}
            yield from self._put_all(SubjectKind.VM, completed, span)
            yield from self._put_all(SubjectKind.CLUSTER, grouped, span)
            yield from self._put_all(SubjectKind.LABELS, {"": whole.affinity_labels}, span)
        if self._details.all_read != NEVER:
            came = self.vms.keys() - self._details.records.keys()
            yield from (Subject(SubjectKind.VM, vm) for vm in came)

    def snapshot(self) -> Snapshot:
        """Return what is known as one picture; the same object until something changes."""
        if self._made is None:
            if self._frame is None:
                raise LookupError("nothing was read yet")
            clusters = self._clusters.records.values()
            networks, profiles = self._known_networks
            reported = replace(
                self._frame,
                clusters=tuple(cluster for cluster, _ in clusters),
                hosts=tuple(self._hosts.records.values()),
                vms=tuple(self._vms.records.values()),
                affinity_groups=tuple(group for _, groups in clusters for group in groups),
                affinity_labels=self._tables[SubjectKind.LABELS].records.get("", ()),
                networks=networks,
                vnic_profiles=profiles,
                member_searches=self._searches.found,
                pending=(),
            )
            made = consistent(with_failover_hosts(reported))
            self._made = believed(made, self._believed, self._now)
        return self._made

    def _put_details(self, details: topology.Details, span: Span) -> Iterable[Subject]:
        """One that the reading lacks keeps what was known: it may have been shifted over a page's edge."""
        lacking = self.vms.keys() - details.vms.keys()
        known = {vm: one for vm, one in self._details.records.items() if vm in lacking}
        found = {vm: one.only(self.demands.details) for vm, one in details.vms.items()}
        meanwhile = self._details.put_all(known | found, span)
        return [Subject(SubjectKind.VM, vm) for vm in lacking.difference(meanwhile)]

    def _put_all(self, kind: SubjectKind, records: Mapping[str, Any], span: Span) -> Iterable[Subject]:
        return [Subject(kind, identity) for identity in self._tables[kind].put_all(records, span)]

    def _lay_over(self) -> None:
        """Add to all hosts and VMs what was measured and read of them elsewhere."""
        hosts, vms = self._hosts.records, self._vms.records
        hosts.update((host.id, self._statistics.of_host(host)) for host in list(hosts.values()))
        vms.update((vm.id, self._complete(vm)) for vm in list(vms.values()))
        self._made = None

    def _complete(self, vm: Vm, began: float | None = None) -> Vm:
        """Add to a VM, which was read at this moment, what was reported and measured of it elsewhere."""
        if began is not None:
            self._reports.read(vm, began)
        details = self._details.records.get(vm.id, VmDetails())
        return self._reports.over(details.put_on(self._statistics.of_vm(vm)))
