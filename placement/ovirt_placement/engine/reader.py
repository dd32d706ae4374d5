"""Reads a snapshot from an engine: four requests for the topology, and more only where more is asked for."""

from __future__ import annotations

from lxml import etree
from msgspec.structs import replace

from ovirt_placement.engine import unfollowed
from ovirt_placement.engine.connection import EngineConnection, EngineFault, EngineSetupError
from ovirt_placement.engine.consistency import consistent
from ovirt_placement.engine.parsing import affinity, clusters, hosts, surroundings, vms
from ovirt_placement.engine.policies import Policy, PolicyReader
from ovirt_placement.model import Cluster, Host, Snapshot, Vm

#: For each entity the engine looks up what is followed, one by one: ask only for what will be used.
_STATISTICS = ("statistics",)
_HOST_DEVICES = ("tags",)
_VM_DEVICES = ("tags", "nics", "disk_attachments.disk")


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
    interfaces and what those refer to. Raises what `EngineConnection.get` raises.
    """
    measured = _STATISTICS if statistics else ()
    try:
        found = clusters.read(_first(connection))
        snapshot = Snapshot(
            clusters=_with_policies(connection, found, policies or PolicyReader()),
            affinity_groups=found.groups,
            hosts=_hosts(connection, measured + (_HOST_DEVICES if devices else ())),
            vms=_vms(connection, measured + (_VM_DEVICES if devices else ())),
            affinity_labels=affinity.labels(_get(connection, "/affinitylabels", "vms", "hosts")),
            data_centers=surroundings.data_centers(_get(connection, "/datacenters")),
            networks=surroundings.networks(_get(connection, "/networks")) if devices else (),
            vnic_profiles=surroundings.vnic_profiles(_get(connection, "/vnicprofiles")) if devices else (),
        )
    except etree.XMLSyntaxError as error:
        raise EngineSetupError(f"{connection.url}: what answers there sends broken XML: {error}") from None
    return consistent(snapshot)


def _with_policies(
    connection: EngineConnection, found: clusters.Clusters, policies: PolicyReader
) -> tuple[Cluster, ...]:
    known = policies.read(connection, set(found.policies.values()))
    unknown = Policy()
    return tuple(
        replace(cluster, policy=policy.factors, scheduling_policy=policy.external)
        for cluster in found.clusters
        for policy in (known.get(found.policies.get(cluster.id, ""), unknown),)
    )


def _hosts(connection: EngineConnection, follow: tuple[str, ...]) -> tuple[Host, ...]:
    content = _get(connection, "/hosts", *follow)
    found = hosts.read(content)
    if unfollowed.ignored(content, follow):
        return tuple(unfollowed.complete_host(connection, host, follow) for host in found)
    return found


def _vms(connection: EngineConnection, follow: tuple[str, ...]) -> tuple[Vm, ...]:
    content = _get(connection, "/vms", *follow)
    found = vms.read(content)
    if unfollowed.ignored(content, follow):
        return tuple(unfollowed.complete_vm(connection, vm, follow) for vm in found)
    return found


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
