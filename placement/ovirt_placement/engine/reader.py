"""Reads a snapshot from an engine: four requests for the topology, and more only where more is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lxml import etree
from msgspec.structs import replace

from ovirt_placement.engine import unfollowed
from ovirt_placement.engine.connection import EngineConnection, EngineFault, EngineSetupError
from ovirt_placement.engine.consistency import consistent
from ovirt_placement.engine.details import ALL_DETAILS, followed
from ovirt_placement.engine.owners import with_owners
from ovirt_placement.engine.parsing import affinity, clusters, hosts, surroundings
from ovirt_placement.engine.policies import Policy, PolicyReader
from ovirt_placement.engine.reservation import with_failover_hosts
from ovirt_placement.model import AffinityLabel, Cluster, Host, Network, Snapshot, Vm, VnicProfile

#: For each entity the engine looks up what is followed, one by one: ask only for what will be used.
_STATISTICS = ("statistics",)
_HOST_DEVICES = ("tags",)
_VM_DEVICES = followed(ALL_DETAILS)


class Networks(NamedTuple):
    """What network interfaces refer to."""

    networks: tuple[Network, ...] = ()
    vnic_profiles: tuple[VnicProfile, ...] = ()


def read_snapshot(
    connection: EngineConnection,
    *,
    statistics: bool = False,
    devices: bool = False,
    policies: PolicyReader | None = None,
) -> Snapshot:
    """Read what rules of placement need: four requests for the topology, one for the data centers.

    Scheduling policies cost a few more; whoever reads often gives a `PolicyReader`, which remembers them.
    With `statistics`, also how busy hosts and VMs are. With `devices`, also tags, disks, network
    interfaces and what those refer to, and the owners of VMs. Raises what `EngineConnection.get` raises.
    """
    policies = policies or PolicyReader()
    told = read_as_told(connection, statistics=statistics, devices=devices, policies=policies)
    return consistent(with_failover_hosts(told))


def read_as_told(
    connection: EngineConnection,
    *,
    statistics: bool = False,
    devices: bool = False,
    policies: PolicyReader,
) -> Snapshot:
    """As `read_snapshot`, but each answer as it came: what vanished between two may still be referred to."""
    with whole_answers(connection):
        found = clusters.read(_first(connection))
        told = Snapshot(
            clusters=with_policies(connection, found, policies),
            affinity_groups=found.groups,
            hosts=read_hosts(connection, statistics=statistics, devices=devices),
            vms=read_vms(connection, statistics=statistics, devices=devices),
            affinity_labels=read_labels(connection),
            data_centers=surroundings.data_centers(_get(connection, "/datacenters")),
        )
        return replace(told, **read_networks(connection)._asdict()) if devices else told


@contextmanager
def whole_answers(connection: EngineConnection) -> Iterator[None]:
    """Say of broken XML what it means: something else than an engine answers."""
    try:
        yield
    except etree.XMLSyntaxError as error:
        raise EngineSetupError(f"{connection.url}: what answers there sends broken XML: {error}") from None


def with_policies(
    connection: EngineConnection, found: clusters.Clusters, policies: PolicyReader
) -> tuple[Cluster, ...]:
    """Return the clusters with what their scheduling policies enable."""
    known = policies.read(connection, set(found.policies.values()))
    unknown = Policy()
    return tuple(
        replace(cluster, policy=policy.factors, scheduling_policy=policy.external)
        for cluster in found.clusters
        for policy in (known.get(found.policies.get(cluster.id, ""), unknown),)
    )


def read_hosts(
    connection: EngineConnection, *, statistics: bool = False, devices: bool = False
) -> tuple[Host, ...]:
    """Read all hosts."""
    follow = (_STATISTICS if statistics else ()) + (_HOST_DEVICES if devices else ())
    content = _get(connection, "/hosts", *follow)
    found = hosts.read(content)
    if unfollowed.ignored(content, follow):
        return tuple(unfollowed.complete_host(connection, host, follow) for host in found)
    return found


def read_labels(connection: EngineConnection) -> tuple[AffinityLabel, ...]:
    """Read all affinity labels with their members."""
    return affinity.labels(_get(connection, "/affinitylabels", "vms", "hosts"))


def read_networks(connection: EngineConnection) -> Networks:
    """Read all networks and vNIC profiles."""
    profiles = surroundings.vnic_profiles(_get(connection, "/vnicprofiles"))
    return Networks(surroundings.networks(_get(connection, "/networks")), profiles)


def read_vms(
    connection: EngineConnection, *, statistics: bool = False, devices: bool = False
) -> tuple[Vm, ...]:
    """Read all VMs."""
    follow = (_STATISTICS if statistics else ()) + (_VM_DEVICES if devices else ())
    content = _get(connection, "/vms", *follow)
    return with_owners(connection, unfollowed.found_vms(connection, content, follow))


def _first(connection: EngineConnection) -> bytes:
    """Read the clusters, which every engine has: if they are not there, there is no engine."""
    try:
        return _get(connection, "/clusters", "affinity_groups", absent=None)
    except EngineFault as fault:
        if fault.code == 404:
            raise EngineSetupError(
                f"{connection.url}: no oVirt engine's API: correct url under [engine];"
                " it ends in /ovirt-engine/api"
            ) from None
        raise


def _get(connection: EngineConnection, path: str, *follow: str, absent: bytes | None = b"<none/>") -> bytes:
    """Read a collection; one that this engine does not have is as an empty one."""
    try:
        return connection.get(path, **({"follow": ",".join(follow)} if follow else {}))
    except EngineFault as fault:
        if fault.code == 404 and absent is not None:
            return absent
        raise
