"""Elements without which clients end, and root elements that are named otherwise than their address."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ovirtsdk4 import Connection
from ovirtsdk4.reader import Reader

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.resources import empty
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_sdk_can_read_the_root_of_every_empty_collection() -> None:
    """An element that the SDK has no reader for ends its user in a traceback."""
    unknown = {root for _, root, _ in empty.collections() if Reader._readers.get(root) is None}
    assert unknown == set()


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("operatingsystems", "operation_systems"),
        ("clusters/cluster1/enabledfeatures", "cluster_features"),
        ("clusters/cluster1/externalnetworkproviders", "external_providers"),
        ("openstacknetworkproviders", "openstack_network_providers"),
        ("vms/db1/mediateddevices", "vm_mediated_devices"),
    ],
)
def test_roots(server: Server, path: str, root: str) -> None:
    reply = request(f"{server.api_url}/{path}")
    assert (reply.status, reply.xml.tag) == (200, root)


def test_operating_systems(sdk: Connection) -> None:
    systems = {system.name: system for system in sdk.system_service().operating_systems_service().list()}
    assert (systems["rhel_9x64"].id, systems["rhel_9_ppc64"].architecture.value) == ("34", "ppc64")
    one = sdk.system_service().operating_systems_service().operating_system_service("0").get()
    assert one.name == "other"


def test_creation_times(sdk: Connection, engine: Engine) -> None:
    """A VM of the state file is as old as the engine."""
    vms = sdk.system_service().vms_service()
    assert vms.vm_service("idle").get().creation_time == NOW
    engine.advance(60)
    vms.vm_service("spare").start()
    engine.advance(60)
    assert vms.vm_service("spare").get().creation_time == NOW


def test_mac_pools_and_addresses(sdk: Connection) -> None:
    system = sdk.system_service()
    cluster = system.clusters_service().list(search="name=Default", follow="mac_pool")[0]
    (pool,) = system.mac_pools_service().list()
    assert (cluster.mac_pool.id, cluster.mac_pool.name, pool.default_pool) == (pool.id, "Default", True)
    (card,) = system.vms_service().vm_service("db1").nics_service().list()
    assert pool.ranges[0].from_ <= card.mac.address <= pool.ranges[0].to
    assert [vm.id for vm in system.vms_service().list(search=f"vnic.mac={card.mac.address}")] == ["db1"]


def test_templates_and_disks(sdk: Connection) -> None:
    system = sdk.system_service()
    blank, other = sorted(system.templates_service().list(), key=lambda template: template.name)
    assert (blank.name, other.version.base_template.id) == ("Blank", other.id)
    assert (blank.cpu.topology.cores, blank.version.version_number) == (1, 1)
    disk = system.disks_service().disk_service("disk1").get()
    (master,) = (domain for domain in system.storage_domains_service().list() if domain.master)
    assert [domain.id for domain in disk.storage_domains] == [master.id]


def test_the_root_names_what_is_special(sdk: Connection) -> None:
    system = sdk.system_service()
    root = system.get()
    assert root.special_objects.root_tag.id == root.special_objects.blank_template.id
    assert system.tags_service().tag_service(root.special_objects.root_tag.id).get().name == "root"
    assert sdk.follow_link(root.authenticated_user).user_name.startswith("admin@")
    assert (root.engine_backup.last_db_backup, len(root.product_info.instance_id)) == (None, 36)


def test_the_summary(sdk: Connection, server: Server) -> None:
    summary = sdk.system_service().get().summary
    assert (summary.vms.total, summary.hosts.active) == (11, 3)
    assert (summary.storage_domains.total, summary.users.total) == (2, 1)
    assert request(f"{server.api_url}", user="user@internal:password").xml.find("summary") is None


def test_the_active_vm_is_a_snapshot(sdk: Connection) -> None:
    db1 = sdk.system_service().vms_service().vm_service("db1")
    (snapshot,) = db1.snapshots_service().list()
    assert (snapshot.description, snapshot.snapshot_type.value, snapshot.vm.id) == (
        "Active VM",
        "active",
        "db1",
    )
    service = db1.snapshots_service().snapshot_service(snapshot.id)
    assert service.get().date == NOW
    assert [disk.id for disk in service.disks_service().list()] == ["disk1", "disk2"]
    assert [card.id for card in service.nics_service().list()] == ["nic1"]
    (vm,) = sdk.system_service().vms_service().list(search="name=db1", follow="snapshots")
    assert [each.description for each in vm.snapshots] == ["Active VM"]


def test_the_root_links_to_every_collection_and_to_those_that_can_be_searched(server: Server) -> None:
    links = {link.get("rel"): link.get("href") for link in request(server.api_url).xml.iter("link")}
    assert links["users/search"] == "/ovirt-engine/api/users?search={query}"
    for rel, address in links.items():
        if not (rel or "").endswith("/search"):
            assert request(f"{server.url}{address}").status == 200, rel
