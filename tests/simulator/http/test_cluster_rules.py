"""What clusters and data centers may be: versions, CPU types, services; refused as the engine refuses it."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, services, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request

VERSION = "<version><major>{}</major><minor>{}</minor></version>"


@pytest.fixture
def clusters(sdk: Connection) -> services.ClustersService:
    return sdk.system_service().clusters_service()


@pytest.fixture
def empty(clusters: services.ClustersService) -> services.ClusterService:
    """A cluster without hosts and VMs, of the version of its data center: 4.6, its clusters' lowest."""
    added = clusters.add(types.Cluster(name="empty", data_center=types.DataCenter(id="dc1")))
    return clusters.cluster_service(added.id)


def refusal(server: Server, method: str, path: str, inside: str) -> tuple[int, str]:
    reply = request(f"{server.api_url}/{path}", method, f"<cluster>{inside}</cluster>")
    return reply.status, reply.xml.findtext("detail") or ""


@pytest.mark.parametrize(
    ("inside", "status", "text"),
    [
        (VERSION.format(9, 9), 400, "Cannot edit Cluster. Selected Compatibility Version is not supported."),
        (VERSION.format(4, 1), 400, "Cannot edit Cluster. Selected Compatibility Version is not supported."),
        (VERSION.format(4, 5), 400, "version can't be decreased if there are hosts in the Cluster."),
        ("<cpu><type>Nonsense CPU</type></cpu>", 409, "unless all Hosts attached to this Cluster are in"),
        ("<cpu><type>AMD EPYC</type></cpu>", 409, "Cannot change Cluster CPU type unless all Hosts"),
        ("<cpu><type>IBM POWER9</type></cpu>", 409, "Cannot change Cluster CPU type unless all Hosts"),
        ("<cpu><type></type></cpu>", 409, "Cannot change Cluster CPU type unless all Hosts"),
        (
            "<cpu><type>Intel Cascadelake Server Family</type></cpu>",
            409,
            "do not support the selected CPU type.\n\nPlease move Host alpha, beta to maintenance first.",
        ),
        (
            "<cpu><type>Secure Intel Nehalem Family</type></cpu>",
            409,
            "Please move Host alpha, beta to maintenance first.",
        ),
        ("<virt_service>false</virt_service>", 400, "At least one service [virt / gluster] must be enabled"),
        (
            "<virt_service>false</virt_service><gluster_service>true</gluster_service>",
            409,
            "Cannot disable virt service on the cluster as it contains VMs.",
        ),
        (
            "<trusted_service>true</trusted_service>",
            400,
            "Attestation server should be configured correctly.",
        ),
        (
            "<ksm><enabled>false</enabled></ksm><ballooning_enabled>false</ballooning_enabled>",
            409,
            "KSM or ballooning must be enabled to allow memory optimization.",
        ),
        ("<fips_mode>enabled</fips_mode>", 409, "Cannot update Cluster FIPS mode unless all Hosts"),
    ],
)
def test_a_change_that_the_engine_refuses(
    server: Server, engine: Engine, inside: str, status: int, text: str
) -> None:
    before = engine.queries.cluster("cluster1")
    given, detail = refusal(server, "PUT", "clusters/cluster1", inside)
    assert given == status
    assert text in detail
    assert engine.queries.cluster("cluster1") == before


@pytest.mark.parametrize(
    ("inside", "status", "text"),
    [
        (
            VERSION.format(9, 9),
            400,
            "Cannot create Cluster. Selected Compatibility Version is not supported.",
        ),
        (
            f"{VERSION.format(9, 9)}<cpu><type>Intel Nehalem Family</type></cpu>",
            400,
            "Cannot create Cluster. The chosen CPU is not supported.",
        ),
        (
            "<cpu><type>Nonsense CPU</type></cpu>",
            400,
            "Cannot create Cluster. The chosen CPU is not supported.",
        ),
        (VERSION.format(4, 5), 400, "Compatibility Version that is lower than the Data Center Compatibility"),
        (
            "<cpu><type>IBM POWER9</type></cpu><bios_type>q35_ovmf</bios_type>",
            409,
            "Q35 chipset is allowed for x86 architecture only.",
        ),
        ("<name>Default</name>", 409, "Cannot create Cluster. Cluster name is already in use."),
    ],
)
def test_a_cluster_that_the_engine_does_not_add(server: Server, inside: str, status: int, text: str) -> None:
    name = "" if "<name>" in inside else "<name>new</name>"
    given, detail = refusal(server, "POST", "clusters", f'{name}<data_center id="dc1"/>{inside}')
    assert given == status
    assert text in detail


def test_a_cluster_is_added_in_the_version_of_its_data_center(empty: services.ClusterService) -> None:
    cluster = empty.get()
    assert (cluster.version.major, cluster.version.minor) == (4, 6)
    assert (cluster.cpu.type, cluster.cpu.architecture) == (
        "Intel Skylake Server Family",
        types.Architecture.X86_64,
    )


def test_without_hosts_and_vms_it_may_be_anything(empty: services.ClusterService) -> None:
    """An architecture follows from the CPU type."""
    empty.update(types.Cluster(cpu=types.Cpu(type="IBM POWER9"), version=types.Version(major=4, minor=8)))
    after = empty.get()
    assert (after.cpu.type, after.cpu.architecture) == ("IBM POWER9", types.Architecture.PPC64)
    empty.update(types.Cluster(version=types.Version(major=4, minor=3)))
    assert empty.get().version.minor == 3


def test_an_upgrade_keeps_the_cpu(clusters: services.ClustersService) -> None:
    service = clusters.cluster_service("cluster1")
    service.update(types.Cluster(cpu=types.Cpu(type="Intel Haswell Family")))
    service.update(types.Cluster(version=types.Version(major=4, minor=7)))
    assert service.get().cpu.type == "Intel Haswell Family"


def test_a_cpu_that_a_version_has_no_more_is_replaced(empty: services.ClusterService, engine: Engine) -> None:
    """Here no host says what it has, so it becomes the first one of the same make."""
    empty.update(types.Cluster(version=types.Version(major=4, minor=3)))
    empty.update(types.Cluster(cpu=types.Cpu(type="AMD EPYC IBPB SSBD")))
    empty.update(types.Cluster(version=types.Version(major=4, minor=4)))
    assert empty.get().cpu.type == "AMD Opteron G4"
    assert [event.code for event in engine.queries.events()[:2]] == [811, 9029]


def test_the_cpu_stays_while_a_vm_is_suspended(engine: Engine, clusters: services.ClustersService) -> None:
    for vm in engine.queries.vms():
        if vm.cluster == "cluster2":
            engine.vms.suspend(vm.id)
    engine.advance(60)
    with pytest.raises(Error, match="if there are suspended VMs in the Cluster") as caught:
        clusters.cluster_service("cluster2").update(types.Cluster(cpu=types.Cpu(type="Intel Haswell Family")))
    assert caught.value.code == 409


def test_a_cluster_stays_in_its_data_center(sdk: Connection, clusters: services.ClustersService) -> None:
    other = sdk.system_service().data_centers_service().add(types.DataCenter(name="other", local=False))
    with pytest.raises(Error, match="Cannot change Data Center association when editing a Cluster") as caught:
        clusters.cluster_service("cluster1").update(types.Cluster(data_center=types.DataCenter(id=other.id)))
    assert caught.value.code == 409


def test_local_storage_serves_one_cluster(sdk: Connection, clusters: services.ClustersService) -> None:
    local = sdk.system_service().data_centers_service().add(types.DataCenter(name="local", local=True))
    clusters.add(types.Cluster(name="first", data_center=types.DataCenter(id=local.id)))
    with pytest.raises(Error, match="more than one Cluster to a Data Center") as caught:
        clusters.add(types.Cluster(name="second", data_center=types.DataCenter(id=local.id)))
    assert caught.value.code == 400


def test_the_types_of_each_version(sdk: Connection) -> None:
    levels = {level.id: level for level in sdk.system_service().cluster_levels_service().list()}
    assert {name: len(level.cpu_types) for name, level in levels.items()} == {
        "4.2": 40,
        "4.3": 37,
        "4.4": 28,
        "4.5": 30,
        "4.6": 30,
        "4.7": 30,
        "4.8": 38,
    }
    found = {cpu.name: cpu for cpu in levels["4.7"].cpu_types}
    assert found["Secure Intel Icelake Server Family"].level == 20
    assert found["IBM z14"].architecture == types.Architecture.S390X


def test_a_data_center_is_given_a_version(sdk: Connection) -> None:
    """What the role `infra` of the collection ovirt.ovirt asks for; without one it is the latest."""
    service = sdk.system_service().data_centers_service()
    added = service.add(types.DataCenter(name="new", local=False, version=types.Version(major=4, minor=6)))
    assert (added.version.major, added.version.minor) == (4, 6)
    assert service.add(types.DataCenter(name="latest", local=False)).version.minor == 8
    changed = service.data_center_service(added.id).update(
        types.DataCenter(version=types.Version(major=4, minor=7))
    )
    assert changed.version.minor == 7
    assert [each.id for each in service.list(search="compatibility_version=4.7")] == [added.id]


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (VERSION.format(9, 9), "Cannot edit Data Center. Selected Compatibility Version is not supported."),
        (VERSION.format(4, 7), "its cluster's version. The following clusters should be upgraded: Default."),
        (VERSION.format(4, 4), "Cannot decrease data center compatibility version."),
        (VERSION.format(4, 2), "The following storage domains cannot be downgraded: data,data2."),
    ],
)
def test_a_version_that_the_data_center_cannot_have(server: Server, inside: str, text: str) -> None:
    reply = request(f"{server.api_url}/datacenters/dc1", "PUT", f"<data_center>{inside}</data_center>")
    assert reply.status == 400
    assert text in (reply.xml.findtext("detail") or "")


def test_a_version_that_no_data_center_is_added_with(server: Server) -> None:
    body = f"<data_center><name>new</name><local>false</local>{VERSION.format(9, 9)}</data_center>"
    reply = request(f"{server.api_url}/datacenters", "POST", body)
    assert (reply.status, reply.xml.findtext("detail")) == (
        400,
        "[Cannot create Data Center. Selected Compatibility Version is not supported.]",
    )
