"""Reads a snapshot from an engine: four requests for the topology, and more only where more is asked for.

What hangs on VMs the engine looks up for each of them by itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

from msgspec.structs import replace

from ovirt_placement.engine import clusters, xml
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault, no_engine
from ovirt_placement.engine.policies import PolicyReader, with_policies
from ovirt_placement.engine.requests import MEASURED, paged_vms, read_collection, read_entity, search_members
from ovirt_placement.engine.vms import (
    ALL_DETAILS,
    NO_DETAILS,
    Detail,
    FoundVm,
    VmDetails,
    followed,
    inherited_permissions,
    parse_vms,
    with_owners,
)
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
from ovirt_placement.model.infrastructure import HostStatistics, VmStatistics
from ovirt_placement.model.record import MemberSearch, SearchOf
from ovirt_placement.model.snapshot import HOST_STATISTICS, HOST_TAGS, VM_STATISTICS, Needed
from ovirt_placement.model.state_file import consistent
from ovirt_placement.rules.doubts import believed

#: For each entity the engine looks up what is followed, one by one: ask only for what will be used.
_STATISTICS = ("statistics",)
_HOST_DEVICES = ("tags",)
#: From this many on, one search costs the engine less than one request for each.
_WORTH_A_SEARCH = 2
#: These make a URL of 4 kB; all headers together must fit into the 8 kB that the engine's Apache passes on.
LONGEST_SEARCH = 80

_Entity = TypeVar("_Entity", Host, FoundVm)


def read_snapshot(
    connection: EngineConnection,
    *,
    statistics: bool = False,
    devices: bool = False,
    vms: bool = True,
    policies: PolicyReader | None = None,
) -> Snapshot:
    """Read what rules of placement need: four requests for the topology, one for the data centers.

    Scheduling policies cost a few more; a frequent reader gives a `PolicyReader`, which remembers them.
    With `statistics`, also how busy hosts and VMs are. With `devices`, also tags, disks, network
    interfaces and what those refer to, and the owners of VMs. It may do without `vms`, which take longer than
    all the rest, and without groups and labels then.
    """
    policies = policies or PolicyReader()
    reported = read_as_reported(
        connection, statistics=statistics, devices=devices, vms=vms, policies=policies
    )
    if devices:
        reported = detailed(connection, reported, ALL_DETAILS)
    return believed(consistent(clusters.with_failover_hosts(reported)))


def read_as_reported(
    connection: EngineConnection,
    *,
    statistics: bool = False,
    devices: bool = False,
    vms: bool = True,
    policies: PolicyReader,
) -> Snapshot:
    """As `read_snapshot`, but each answer as it came: what vanished between two may still be referred to.

    Of devices there are but the tags of hosts.
    """
    found = _read_clusters(connection, **({"follow": "affinity_groups"} if vms else {}))
    follow = _STATISTICS if statistics else ()
    return Snapshot(
        clusters=with_policies(connection, found, policies),
        affinity_groups=found.groups,
        hosts=read_hosts(connection, statistics=statistics, devices=devices),
        vms=tuple(one.vm for one in read_collection(connection, "/vms", parse_vms, *follow)) if vms else (),
        affinity_labels=read_labels(connection) if vms else (),
        data_centers=read_collection(connection, "/datacenters", clusters.data_centers),
    )


def read_groups(connection: EngineConnection) -> tuple[tuple[AffinityGroup, ...], tuple[AffinityLabel, ...]]:
    """Read all affinity groups and labels."""
    return _read_clusters(connection, follow="affinity_groups").groups, read_labels(connection)


def read_hosts(
    connection: EngineConnection, *, statistics: bool = False, devices: bool = False
) -> tuple[Host, ...]:
    """Read all hosts, perhaps with their statistics, and tags."""
    follow = (_STATISTICS if statistics else ()) + (_HOST_DEVICES if devices else ())
    return read_collection(connection, "/hosts", clusters.parse_hosts, *follow)


def read_labels(connection: EngineConnection) -> tuple[AffinityLabel, ...]:
    """Read all affinity labels with their members."""
    return read_collection(connection, "/affinitylabels", clusters.labels, "vms", "hosts")


def _read_clusters(connection: EngineConnection, **query: str) -> clusters.Clusters:
    """Read the clusters, which every engine has: if they are not there, there is no engine."""
    try:
        return connection.read("/clusters", clusters.parse_clusters, **query)
    except EngineFault as fault:
        if fault.code != HTTPStatus.NOT_FOUND:
            raise
    raise no_engine(connection.settings)


def read_networks(connection: EngineConnection) -> tuple[tuple[Network, ...], tuple[VnicProfile, ...]]:
    """Read all networks and vNIC profiles."""
    profiles = read_collection(connection, "/vnicprofiles", clusters.vnic_profiles)
    return read_collection(connection, "/networks", clusters.networks), profiles


#: What the network interfaces of VMs refer to.
Networks = tuple[tuple[Network, ...], tuple[VnicProfile, ...]]


@dataclass(frozen=True)
class Details:
    """What one reading found of all VMs, by id."""

    #: What was read.
    read: Detail
    vms: Mapping[str, VmDetails] = field(default_factory=dict)
    networks: Networks = ((), ())


def read_details(connection: EngineConnection, wanted: Detail) -> Details:
    """Read what is wanted of all VMs, page by page, as `paged_vms` does.

    What the VMs inherit is read before and after them: it may change meanwhile.
    """
    before = inherited_permissions(connection) if Detail.OWNER in wanted else frozenset()
    found = with_owners(connection, paged_vms(connection, followed(wanted)), before)
    vms = {vm.id: VmDetails.of(vm) for vm in found}
    return Details(wanted, vms, read_networks(connection) if Detail.NICS in wanted else ((), ()))


def detailed(connection: EngineConnection, snapshot: Snapshot, wanted: Detail) -> Snapshot:
    """Return the snapshot, consistent, with these details of every VM, but of those that are gone by now."""
    found = read_details(connection, wanted)
    missed = reread_vms(connection, [vm.id for vm in snapshot.vms if vm.id not in found.vms], wanted)
    known = {**found.vms, **{vm.id: VmDetails.of(vm) for vm in missed.values()}}
    vms = tuple(known[vm.id].put_on(vm) if vm.id in known else vm for vm in snapshot.vms)
    networks, profiles = found.networks
    return consistent(replace(snapshot, vms=vms, networks=networks, vnic_profiles=profiles))


@dataclass(frozen=True)
class Statistics:
    """What was measured, by id."""

    hosts: Mapping[str, HostStatistics] = field(default_factory=dict)
    vms: Mapping[str, VmStatistics] = field(default_factory=dict)
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: What was to be measured.
    read: Needed = frozenset()

    def of_host(self, host: Host) -> Host:
        """Return the host with what was measured of it, and its tags if they were read."""
        measured = self.hosts.get(host.id, HostStatistics()).put_on(host)
        tags = self.tags.get(host.id, measured.tags)
        return measured if tags == measured.tags else replace(measured, tags=tags)

    def of_vm(self, vm: Vm) -> Vm:
        """Return the VM with what was measured of it; one that runs nowhere uses nothing."""
        known = None if vm.host is None else self.vms.get(vm.id)
        return (known or VmStatistics()).put_on(vm)

    def over(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with what was measured of its hosts and VMs."""
        hosts, vms = map(self.of_host, snapshot.hosts), map(self.of_vm, snapshot.vms)
        return replace(snapshot, hosts=tuple(hosts), vms=tuple(vms))


def read_statistics(connection: EngineConnection, wanted: Needed) -> Statistics:
    """Measure what is wanted, VMs page by page, as `paged_vms` does."""
    tags = HOST_TAGS in wanted
    hosts = read_hosts(connection, statistics=True, devices=tags) if HOST_STATISTICS in wanted else ()
    found = paged_vms(connection, _STATISTICS, MEASURED) if VM_STATISTICS in wanted else ()
    return Statistics(
        {host.id: HostStatistics.of(host) for host in hosts},
        {one.id: VmStatistics.of(one.vm) for one in found if one.vm.host is not None},
        {host.id: host.tags for host in hosts} if tags else {},
        wanted,
    )


def read_searches(
    connection: EngineConnection, wanted: Iterable[tuple[SearchOf, str]]
) -> tuple[MemberSearch, ...]:
    """Have the engine answer them; its refusals stand in the answers."""
    return tuple(search_members(connection, of, text) for of, text in sorted(wanted))


def read_descriptions(connection: EngineConnection, cluster: str) -> dict[str, str]:
    """The descriptions of a cluster's groups, by id."""

    def parse(content: bytes) -> dict[str, str]:
        found = xml.elements(content, "affinity_group")
        return {xml.identity(one): xml.text(one.find("description")) for one in found}

    return connection.read(f"/clusters/{cluster}/affinitygroups", parse)


# What may have changed is read again alone: some VMs or hosts by their ids, or a cluster with its groups.


def reread_vms(
    connection: EngineConnection, ids: Sequence[str], details: Detail = NO_DETAILS
) -> dict[str, Vm]:
    """Read these VMs, with these details, by id; those that are gone are not among them."""
    found = _reread(connection, "/vms", ids, parse_vms, _following(details))
    return {vm.id: vm for vm in with_owners(connection, found.values())}


def find_vms(connection: EngineConnection, ids: Sequence[str], details: Detail = NO_DETAILS) -> dict[str, Vm]:
    """Look for VMs that may never have been, by one search; as `reread_vms`, but believes it at once."""
    found = connection.read("/vms", parse_vms, search=_any_of(ids), **_following(details))
    return {vm.id: vm for vm in with_owners(connection, found) if vm.id in ids}


def reread_hosts(connection: EngineConnection, ids: Sequence[str]) -> dict[str, Host]:
    """Read these hosts, by id; those that are gone are not among them."""
    return _reread(connection, "/hosts", ids, clusters.parse_hosts, {})


def reread_cluster(
    connection: EngineConnection, cluster_id: str, policies: PolicyReader
) -> tuple[Cluster, tuple[AffinityGroup, ...]] | None:
    """Read one cluster and its affinity groups; None if it is gone."""
    query = {"follow": "affinity_groups"}
    found = read_entity(connection, "/clusters", cluster_id, clusters.parse_clusters, **query)
    if found is None:
        return None
    (cluster,) = with_policies(connection, found, policies)
    return cluster, found.groups


def _following(details: Detail) -> dict[str, str]:
    return {"follow": ",".join(followed(details))} if details else {}


def _any_of(ids: Sequence[str]) -> str:
    return " or ".join(f"id={wanted}" for wanted in ids)


def _reread(
    connection: EngineConnection,
    path: str,
    ids: Sequence[str],
    parse: Callable[[bytes], tuple[_Entity, ...]],
    query: Mapping[str, str],
) -> dict[str, _Entity]:
    found: dict[str, _Entity] = {}
    for start in range(0, len(ids), LONGEST_SEARCH) if len(ids) >= _WORTH_A_SEARCH else ():
        search = _any_of(ids[start : start + LONGEST_SEARCH])
        found.update((one.id, one) for one in connection.read(path, parse, search=search, **query))
    # A search that the engine cannot parse finds nothing, without an error: what it lacks is asked for.
    for lacked in [wanted for wanted in ids if wanted not in found]:
        found.update((one.id, one) for one in read_entity(connection, path, lacked, parse, **query) or ())
    return found
