"""The Python SDK's own examples, as they are but for where the engine is; it has what they name."""

from __future__ import annotations

import functools
import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import ovirtsdk4
import pytest

from ovirt_placement.model import DataCenter, Disk, Network, Nic, Snapshot, VnicProfile
from tests.builders import cluster, host, snapshot, vm
from tests.clients.python_packages import sources
from tests.clients.world import served

pytestmark = pytest.mark.slow

PACKAGE = "ovirt-engine-sdk-python==4.6.3"

WORLD: Snapshot = msgspec.structs.replace(
    snapshot(
        cluster(name="mycluster", data_center="dc1"),
        host("host1", name="myhost"),
        host("host2", name="other"),
        vm(
            "vm",
            name="myvm",
            disks=(Disk(id="disk1", bootable=True),),
            nics=(Nic(id="nic1", name="nic1", vnic_profile="vp1"),),
        ),
        vm("vm0", "host1", name="myvm0"),
        vm("vm1", name="myvm1", owner="user2"),
        vm("vm2", name="myvm2"),
        vm("vm3", name="myvm3"),
    ),
    data_centers=(DataCenter(id="dc1", name="mydc"),),
    networks=(Network(id="net1", name="mynetwork"),),
    vnic_profiles=(VnicProfile(id="vp1", name="mynetwork", network="net1"),),
)

#: What is otherwise in some stories: the cluster is yet to come; the host is in maintenance.
WORLDS = {
    "a host's move": msgspec.structs.replace(
        snapshot(cluster(name="first", data_center="dc1"), host("host1", name="myhost")),
        data_centers=WORLD.data_centers,
    ),
    "a host's end": snapshot(host("host1", name="myhost", status="maintenance", free_mb=65536)),
}

#: Examples in the order in which one leaves behind what the next one needs.
STORIES = {
    "connecting": "test_connection connection_builder disable_compression asynchronous_inventory "
    "show_summary",
    "a VM": "search_vms list_vms page_vms follow_vm_links list_vm_disks list_vm_snapshots get_vm_ip "
    "print_vm_mac_duplicates remove_numa_nodes_from_vm pin_vm enable_serial_console start_vm stop_vm "
    "start_vm_with_boot_devices stop_vm start_vm_with_cloud_init stop_vm",
    "a VM's beginning and end": "add_template add_independet_vm remove_vm add_vm start_vm stop_vm remove_vm",
    "tags": "add_tag list_tags assign_tag_to_vm list_tags_of_vm unassign_tag_to_vm remove_tag",
    "affinity labels": "add_affinity_label assign_affinity_label_to_vm list_affinity_labels",
    "permissions": "list_roles assign_permission_to_vms",
    "hosts": "list_host_statistics upgrade_host",
    "a host's move": "add_cluster change_host_cluster",
    "a host's end": "remove_host",
    "events": "poll_events",
}


class Enough(Exception):
    """An example that never ends has waited often enough."""


@pytest.fixture
def place(story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Begin an engine, and lead every connection of an example to it; its waits are short."""
    waits = iter(range(200))

    def sleep(_: float, real: Any = time.sleep) -> None:
        if next(waits, None) is None:
            raise Enough
        real(0.05)

    with served(tmp_path, world=WORLDS.get(story, WORLD)) as url:
        here = {"url": url, "ca_file": str(tmp_path / "ca.pem"), "password": "password"}
        connection = ovirtsdk4.Connection

        class Here(connection):  # type: ignore[misc,valid-type]
            def __init__(self, **given: Any) -> None:
                super().__init__(**given | here)

        with monkeypatch.context() as patch:
            patch.setattr(ovirtsdk4, "Connection", Here)
            patch.setattr(time, "sleep", sleep)
            patch.chdir(tmp_path)
            yield tmp_path


@pytest.mark.parametrize("story", STORIES)
def test_examples(story: str, place: Path, installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (examples,) = sources(installed, PACKAGE).glob("*/examples")
    for name in STORIES[story].split():
        run = functools.partial(runpy.run_path, str(examples / f"{name}.py"), run_name="__main__")
        if name == "poll_events":
            with pytest.raises(Enough):
                run()
        else:
            run()
    printed = capsys.readouterr().out
    assert all(words in printed for words in PRINTED.get(story, ()))


#: Some of what examples print, by which they are known to have found what they looked for.
PRINTED = {
    "connecting": ["Connection works.", "Loaded 5 VMs.", "vms: 5"],
    "a VM": ["myvm: vm", "cluster: mycluster", "template: Blank", "provisioned_size: 10737418240"],
    "tags": ["mytag: My custom tag"],
    "affinity labels": ["my_affinity_label:", " - myvm0"],
    "permissions": ["UserVmManager"],
    "hosts": ["memory.total: ", "Check for upgrade done."],
    "events": ["logged in"],
}
