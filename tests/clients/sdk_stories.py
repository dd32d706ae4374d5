"""Which of the Python SDK's examples run, in what order, and what the engine has of what they name."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from ovirtsdk4 import types

from ovirt_placement.model import DataCenter, Disk, Network, Nic, Snapshot, VnicProfile
from tests.builders import cluster, host, snapshot, vm

_DATA_CENTER = DataCenter(id="dc1", name="mydc")
_NETWORKS = (Network(id="net0", name="ovirtmgmt"), Network(id="net1", name="mynetwork"))

USUAL: Snapshot = replace(
    snapshot(
        cluster(name="mycluster", data_center="dc1"),
        host("host1", name="myhost"),
        host("host2", name="other"),
        vm(
            "vm",
            name="myvm",
            owner="myuser@mydomain",
            disks=(Disk(id="disk1", bootable=True),),
            nics=(Nic(id="nic1", name="nic1", vnic_profile="vp1"),),
        ),
        vm("vm0", "host1", name="myvm0"),
        vm("vm1", name="myvm1", owner="user2"),
        vm("vm2", name="myvm2"),
        vm("vm3", name="myvm3"),
    ),
    data_centers=(_DATA_CENTER,),
    networks=_NETWORKS,
    vnic_profiles=(VnicProfile(id="vp1", name="mynetwork", network="net1"),),
)

#: What is otherwise in some stories.
WORLDS = {
    "a host's beginning": replace(snapshot(cluster(name="mycluster")), networks=_NETWORKS),
    "a host's move": replace(
        # Its CPU, Intel Conroe Family, is one of the first version only.
        snapshot(cluster(name="first", data_center="dc1", compatibility="4.2"), host("host1", name="myhost")),
        data_centers=(_DATA_CENTER,),
        networks=_NETWORKS,
    ),
    "a host's end": snapshot(host("host1", name="myhost", status="maintenance", free_mb=65536)),
    "a data center": snapshot(host("host1"), vm("vm", "host1")),
    "VMs from a template": replace(
        snapshot(
            cluster(name="mycluster"), host("host1"), vm("golden", disks=(Disk(id="disk1", bootable=True),))
        )
    ),
}

#: Examples in the order in which one leaves behind what the next one needs.
STORIES = {
    "connecting": "test_connection connection_builder disable_compression asynchronous_inventory "
    "show_summary",
    "a VM": "search_vms list_vms page_vms follow_vm_links list_vm_disks list_vm_snapshots get_vm_ip "
    "print_vm_mac_duplicates add_instance_type remove_numa_nodes_from_vm pin_vm "
    "enable_serial_console set_vm_serial_number start_vm stop_vm start_vm_with_boot_devices stop_vm "
    "start_vm_with_cloud_init stop_vm",
    "a VM's beginning and end": "add_template add_independet_vm remove_vm add_vm start_vm stop_vm remove_vm",
    "VMs from a template": "add_vm_from_template_version remove_vm add_vm_with_sysprep add_vm_pool",
    "a VM's devices": "add_vm_nic add_vm_disk deactivate_disk_attachment list_disk_snapshots "
    "set_vm_lease_storage_domain add_vnc_console start_vm change_vm_cd get_display_ticket",
    "a disk that grows": "extend_disk",
    "a VM's snapshots": "clone_vm_from_snapshot add_vm_snapshot list_vm_snapshots",
    "disks": "add_floating_disk add_disks delete_disks list_storage_domains",
    "tags": "add_tag list_tags assign_tag_to_vm list_tags_of_vm unassign_tag_to_vm remove_tag",
    "affinity labels": "add_affinity_label assign_affinity_label_to_vm list_affinity_labels",
    "permissions": "add_role add_group list_roles assign_permission assign_permission_to_vms",
    "hosts": "list_host_statistics upgrade_host add_fence_agent update_fencing_options",
    "a host's beginning": "add_host",
    "a host's move": "add_cluster assign_network_to_cluster list_cluster_networks add_mac_pool "
    "change_host_cluster",
    "a host's end": "remove_host",
    "data centers": "update_data_center",
    "a data center": "add_data_center data_center_maintenance",
    "events": "poll_events",
}

#: What some are called with.
ARGUMENTS = {
    "change_vm_cd": "--disk-id disk1 myvm",
    "add_disks": "--sd-name mydata --size 1g --count 2",
    "delete_disks": "--sd-name mydata",
    "list_disk_snapshots": "disk1",
    "list_storage_domains": "--search name=mydata",
}

#: Some of what examples print, by which they are known to have found what they looked for.
PRINTED = {
    "connecting": ["Connection works.", "Loaded 5 VMs.", "vms: 5"],
    "a VM": ["myvm: vm", "cluster: mycluster", "template: Blank", "provisioned_size: 10737418240"],
    "a VM's devices": ['"parent": null'],
    "a VM's snapshots": ["myvm:My snapshot:disk1:mydata"],
    "disks": ["All disks are ready", "All disks were removed", '"name": "mydata"'],
    "tags": ["mytag: My custom tag"],
    "affinity labels": ["my_affinity_label:", " - myvm0"],
    "permissions": ["UserVmManager", "myrole"],
    "hosts": ["memory.total: ", "Check for upgrade done."],
    "a host's move": ["name: mynetwork"],
    "data centers": ["mydc: Updated description"],
    "a data center": ["Setting maintenance mode on Hosts"],
    "events": ["logged in"],
}


def prepare(system: Any, story: str) -> None:
    """Let the engine have what no state file says and the examples name."""
    domains = system.storage_domains_service()
    if story == "events":
        return
    for domain in domains.list(search="name=data"):
        name = "bs-scsi-012" if story == "a disk that grows" else "mydata"
        domains.storage_domain_service(domain.id).update(types.StorageDomain(name=name))
    if story == "a VM's devices":
        consoles = system.vms_service().vm_service("vm").graphics_consoles_service()
        consoles.add(types.GraphicsConsole(protocol=types.GraphicsType.SPICE))
    if story == "VMs from a template":
        templates = system.templates_service()
        first = templates.add(types.Template(name="mytemplate", vm=types.Vm(id="golden")))
        version = types.TemplateVersion(base_template=types.Template(id=first.id))
        for _ in range(2):
            templates.add(types.Template(name="mytemplate", vm=types.Vm(id="golden"), version=version))
    if story == "a VM's snapshots":
        service = system.vms_service().vm_service("vm").snapshots_service()
        made = service.snapshot_service(service.add(types.Snapshot(description="mysnap")).id)
        while made.get().snapshot_status != types.SnapshotStatus.OK:
            pass
