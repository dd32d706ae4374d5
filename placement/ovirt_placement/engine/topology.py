"""Reads a snapshot from an engine: four requests for the topology, and more only where more is asked for.

It is made consistent: what vanished between two requests is named by neither.

What hangs on VMs the engine looks up for each of them by itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from http import HTTPStatus
from itertools import chain
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from ovirt_placement.engine import clusters, xml
from ovirt_placement.engine.clusters import with_failover_hosts
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault, EngineSetupError
from ovirt_placement.engine.policies import PolicyReader, with_policies
from ovirt_placement.engine.requests import MEASURED, get_collection, get_entity, paged_vms, whole_answers
from ovirt_placement.engine.vms import (
    ALL_DETAILS,
    NO_DETAILS,
    Detail,
    FoundVm,
    followed,
    inherited_permissions,
    parse_vms,
    with_owners,
)
from ovirt_placement.model import (
    AffinityGroup,
    AffinityLabel,
    Cluster,
    DataCenter,
    Host,
    Network,
    Snapshot,
    Vm,
    VnicProfile,
)
from ovirt_placement.model.infrastructure import RUNNING_STATUSES
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
    policies: PolicyReader | None = None,
) -> Snapshot:
    """Read what rules of placement need: four requests for the topology, one for the data centers.

    Scheduling policies cost a few more; a frequent reader gives a `PolicyReader`, which remembers them.
    With `statistics`, also how busy hosts and VMs are. With `devices`, also tags, disks, network
    interfaces and what those refer to, and the owners of VMs. Raises what `EngineConnection.get` raises.
    """
    policies = policies or PolicyReader()
    reported = read_as_reported(connection, statistics=statistics, devices=devices, policies=policies)
    if devices:
        reported = detailed(connection, reported, ALL_DETAILS)
    return believed(consistent(with_failover_hosts(reported)))


def read_as_reported(
    connection: EngineConnection, *, statistics: bool = False, devices: bool = False, policies: PolicyReader
) -> Snapshot:
    """As `read_snapshot`, but each answer as it came: what vanished between two may still be referred to.

    Of devices there are but the tags of hosts.
    """
    with whole_answers(connection):
        found = clusters.parse_clusters(_answer_of_an_engine(connection, follow="affinity_groups"))
        return Snapshot(
            clusters=with_policies(connection, found, policies),
            affinity_groups=found.groups,
            hosts=read_hosts(connection, statistics=statistics, devices=devices),
            vms=read_vms(connection, statistics=statistics),
            affinity_labels=read_labels(connection),
            data_centers=_data_centers(connection),
        )


def read_infrastructure(connection: EngineConnection) -> Snapshot:
    """Read clusters, hosts and data centers: VMs take longer than all the rest.

    Raises what `EngineConnection.get` raises.
    """
    with whole_answers(connection):
        return consistent(
            Snapshot(
                clusters=with_policies(
                    connection, clusters.parse_clusters(_answer_of_an_engine(connection)), PolicyReader()
                ),
                hosts=read_hosts(connection),
                data_centers=_data_centers(connection),
                vms=(),
                affinity_groups=(),
                affinity_labels=(),
            )
        )


def read_groups(connection: EngineConnection) -> tuple[tuple[AffinityGroup, ...], tuple[AffinityLabel, ...]]:
    """Read all affinity groups and labels; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        found = clusters.parse_clusters(_answer_of_an_engine(connection, follow="affinity_groups"))
        return found.groups, read_labels(connection)


def read_hosts(
    connection: EngineConnection, *, statistics: bool = False, devices: bool = False
) -> tuple[Host, ...]:
    """Read all hosts, perhaps with their statistics, and tags; raises what `EngineConnection.get` raises."""
    follow = (_STATISTICS if statistics else ()) + (_HOST_DEVICES if devices else ())
    with whole_answers(connection):
        return clusters.parse_hosts(get_collection(connection, "/hosts", *follow))


def read_labels(connection: EngineConnection) -> tuple[AffinityLabel, ...]:
    """Read all affinity labels with their members; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        return clusters.labels(get_collection(connection, "/affinitylabels", "vms", "hosts"))


def read_vms(connection: EngineConnection, *, statistics: bool = False) -> tuple[Vm, ...]:
    """Read all VMs."""
    content = get_collection(connection, "/vms", *(_STATISTICS if statistics else ()))
    return tuple(found.vm for found in parse_vms(content))


def measured_vms(connection: EngineConnection) -> Iterator[Vm]:
    """Read VMs with their statistics, page by page, as `paged_vms` does."""
    return (found.vm for found in paged_vms(connection, ("statistics",), MEASURED))


def _data_centers(connection: EngineConnection) -> tuple[DataCenter, ...]:
    return clusters.data_centers(get_collection(connection, "/datacenters"))


def _answer_of_an_engine(connection: EngineConnection, **query: str) -> bytes:
    """Read the clusters, which every engine has: if they are not there, there is no engine."""
    try:
        return connection.get("/clusters", **query)
    except EngineFault as fault:
        if fault.code != HTTPStatus.NOT_FOUND:
            raise
    raise EngineSetupError(
        f"{connection.settings.address}: no oVirt engine's API: correct url under [engine];"
        " it ends in /ovirt-engine/api"
    )


def read_networks(connection: EngineConnection) -> tuple[tuple[Network, ...], tuple[VnicProfile, ...]]:
    """Read all networks and vNIC profiles; raises what `EngineConnection.get` raises."""
    with whole_answers(connection):
        profiles = clusters.vnic_profiles(get_collection(connection, "/vnicprofiles"))
        return clusters.networks(get_collection(connection, "/networks")), profiles


def detailed_vms(connection: EngineConnection, details: Detail) -> tuple[Vm, ...]:
    """Read VMs with these details, page by page, as `paged_vms` does.

    What the VMs inherit is read before and after them: it may change meanwhile.
    """
    with whole_answers(connection):
        before = inherited_permissions(connection) if Detail.OWNER in details else frozenset()
        return with_owners(connection, paged_vms(connection, followed(details)), before)


def detailed(connection: EngineConnection, snapshot: Snapshot, details: Detail) -> Snapshot:
    """Return the snapshot with these details of every VM, but of those that are gone by now.

    Raises what `EngineConnection.get` raises.
    """
    found: Mapping[str, Vm] = {vm.id: vm for vm in detailed_vms(connection, details)}
    missed = [vm.id for vm in snapshot.vms if vm.id not in found]
    found = {**found, **reread_vms(connection, missed, details)}
    networks, profiles = read_networks(connection) if Detail.NICS in details else ((), ())
    vms = tuple(
        replace(vm, disks=one.disks, nics=one.nics, tags=one.tags, owner=one.owner)
        for vm in snapshot.vms
        for one in (found.get(vm.id, vm),)
    )
    return replace(snapshot, vms=vms, networks=networks, vnic_profiles=profiles)


def read_descriptions(connection: EngineConnection, cluster: str) -> dict[str, str]:
    """The descriptions of a cluster's groups, by id. Raises what `EngineConnection.get` raises."""
    content = connection.get(f"/clusters/{cluster}/affinitygroups")
    return {
        xml.identity(element): xml.text(element.find("description"))
        for element in xml.elements(content, "affinity_group")
    }


# What may have changed is read again alone: some VMs or hosts by their ids, or a cluster with its groups.


def reread_vms(
    connection: EngineConnection, ids: Sequence[str], details: Detail = NO_DETAILS
) -> dict[str, Vm]:
    """Read these VMs, with these details, by id; those that are gone are not among them."""
    found = _reread(connection, "/vms", ids, parse_vms, _following(details))
    with whole_answers(connection):
        return {vm.id: vm for vm in with_owners(connection, found.values())}


def find_vms(connection: EngineConnection, ids: Sequence[str], details: Detail = NO_DETAILS) -> dict[str, Vm]:
    """Look for VMs that may never have been, by one search; as `reread_vms`, but believes it at once."""
    with whole_answers(connection):
        found = parse_vms(connection.get("/vms", search=_any_of(ids), **_following(details)))
        return {vm.id: vm for vm in with_owners(connection, found) if vm.id in ids}


def reread_hosts(connection: EngineConnection, ids: Sequence[str]) -> dict[str, Host]:
    """Read these hosts, by id; those that are gone are not among them."""
    return _reread(connection, "/hosts", ids, clusters.parse_hosts, {})


def reread_cluster(
    connection: EngineConnection, cluster_id: str, policies: PolicyReader
) -> tuple[Cluster, tuple[AffinityGroup, ...]] | None:
    """Read one cluster and its affinity groups; None if it is gone."""
    with whole_answers(connection):
        content = get_entity(connection, "/clusters", cluster_id, follow="affinity_groups")
        if content is None:
            return None
        found = clusters.parse_clusters(content)
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
    read: Callable[[bytes], tuple[_Entity, ...]],
    query: Mapping[str, str],
) -> dict[str, _Entity]:
    found: dict[str, _Entity] = {}
    with whole_answers(connection):
        if len(ids) >= _WORTH_A_SEARCH:
            for start in range(0, len(ids), LONGEST_SEARCH):
                search = _any_of(ids[start : start + LONGEST_SEARCH])
                content = connection.get(path, search=search, **query)
                found.update((entity.id, entity) for entity in read(content))
        # A search that the engine cannot parse finds nothing, without an error: what it lacks is asked for.
        for lacked in [wanted for wanted in ids if wanted not in found]:
            if (one := get_entity(connection, path, lacked, **query)) is not None:
                found.update((entity.id, entity) for entity in read(one))
    return found


# One snapshot of several answers: what vanished between two requests is named by neither.


class _There(NamedTuple):
    """What may be named: the ids of what is there and can stand."""

    data_centers: Set[str]
    clusters: Set[str]
    hosts: Set[str]
    vms: Set[str]
    profiles: Set[str]
    labels: Set[str]


def consistent(snapshot: Snapshot) -> Snapshot:
    """Drop the references to what the snapshot does not hold, and what cannot stand without them."""
    there = _there(snapshot)
    vms = snapshot.vms
    if not _all_stand(vms, there):
        vms = tuple(kept for vm in vms if (kept := _vm(vm, there)) is not None)
    return replace(
        snapshot,
        clusters=tuple(
            one if one.data_center in there.data_centers else replace(one, data_center=None)
            for one in snapshot.clusters
        ),
        hosts=tuple(host for host in snapshot.hosts if host.cluster in there.clusters),
        vms=vms,
        affinity_groups=tuple(_group(group, there) for group in snapshot.affinity_groups),
        affinity_labels=tuple(
            replace(label, vms=_known(label.vms, there.vms), hosts=_known(label.hosts, there.hosts))
            for label in snapshot.affinity_labels
        ),
        vnic_profiles=tuple(profile for profile in snapshot.vnic_profiles if profile.id in there.profiles),
    )


def _all_stand(vms: Sequence[Vm], there: _There) -> bool:
    """Whether everything that any VM names is there, as nearly always: sets show that much quicker."""
    hosts: set[str | None] = {vm.host for vm in vms}
    hosts.update(vm.migrating_to for vm in vms)
    hosts.update(chain.from_iterable(vm.pinned_hosts for vm in vms))
    profiles = {nic.vnic_profile for vm in vms for nic in vm.nics}
    return (
        {vm.cluster for vm in vms} <= there.clusters
        and hosts - {None} <= there.hosts
        and profiles - {None} <= there.profiles
    )


def _there(reported: Snapshot) -> _There:
    clusters = {cluster.id for cluster in reported.clusters}
    networks = {network.id for network in reported.networks}
    return _There(
        data_centers={data_center.id for data_center in reported.data_centers},
        clusters=clusters,
        hosts={host.id for host in reported.hosts if host.cluster in clusters},
        vms={vm.id for vm in reported.vms if vm.cluster in clusters},
        profiles={profile.id for profile in reported.vnic_profiles if profile.network in networks},
        labels={label.id for label in reported.affinity_labels},
    )


def _vm(vm: Vm, there: _There) -> Vm | None:
    """Keep of a VM what can stand."""
    if vm.cluster not in there.clusters:
        return None
    if vm.host is not None and vm.host not in there.hosts:
        # Its host was removed a moment ago: it runs on none that is known.
        vm = replace(vm, host=None, status="unknown" if vm.status in RUNNING_STATUSES else vm.status)
    if vm.migrating_to is not None and vm.migrating_to not in there.hosts:
        vm = replace(vm, migrating_to=None)
    if vm.pinned_hosts and not there.hosts >= {*vm.pinned_hosts}:
        vm = replace(vm, pinned_hosts=_known(vm.pinned_hosts, there.hosts))
    if any(nic.vnic_profile is not None and nic.vnic_profile not in there.profiles for nic in vm.nics):
        vm = replace(
            vm,
            nics=tuple(
                nic if nic.vnic_profile in there.profiles else replace(nic, vnic_profile=None)
                for nic in vm.nics
            ),
        )
    return vm


def _group(group: AffinityGroup, there: _There) -> AffinityGroup:
    labels = {*group.vm_labels, *group.host_labels}
    if there.vms >= {*group.vms} and there.hosts >= {*group.hosts} and there.labels >= labels:
        return group
    return replace(
        group,
        vms=_known(group.vms, there.vms),
        hosts=_known(group.hosts, there.hosts),
        vm_labels=_known(group.vm_labels, there.labels),
        host_labels=_known(group.host_labels, there.labels),
    )


def _known(ids: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    return tuple(referred for referred in ids if referred in known)
