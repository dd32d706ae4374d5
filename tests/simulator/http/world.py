"""The engine that these tests read: clusters, hosts, VMs in many states, groups, labels and networks."""

from typing import Any

import msgspec

from ovirt_placement.model import DataCenter, Disk, Network, Nic, Snapshot, Vm, VnicProfile
from tests import builders
from tests.builders import APART, DISABLED, SOFT_TOGETHER, TOGETHER, cluster, group, host, label, snapshot


def vm(name: str, on: str | None = None, **fields: Any) -> Vm:
    """A VM of 1 GiB, if nothing else is said."""
    return builders.vm(name, on, **{"memory_mb": 1024, **fields})


WORLD: Snapshot = msgspec.structs.replace(
    snapshot(
        cluster(
            name="Default",
            data_center="dc1",
            ha_reservation=True,
            compatibility="4.6",
            memory_overcommit_percent=150,
            count_threads_as_cores=True,
            scheduling_properties={"HighUtilization": "80"},
        ),
        cluster("cluster2", name="Second <&>", data_center="dc1"),
        host("host1", name="alpha", threads=32, tags=("ssd",), cpu_percent=35.5),
        host("host2", name="beta"),
        host("host3", name="gamma", status="maintenance", free_mb=65536),
        host("far", cluster="cluster2"),
        vm(
            "web1",
            "host1",
            ha=True,
            tags=("red", "blue"),
            usage_cpu_percent=12.34,
            custom_properties={"k": "<v>"},
        ),
        vm("web2", "host2", tags=("red",), pinned_hosts=("host2", "host1")),
        vm("web3", "host1", migratable=False),
        vm(
            "db1",
            "host2",
            vcpus=4,
            memory_mb=8192,
            guaranteed_mb=4096,
            migratable=False,
            pinned_hosts=("host2",),
            template="tpl1",
            instance_type="small",
            quota="quota1",
            cpu_profile="profile1",
            disks=(Disk(id="disk1", bootable=True, profile="fast"), Disk(id="disk2", bootable=False)),
            nics=(Nic(id="nic1", name="eth0", vnic_profile="vp1"),),
        ),
        vm("Engine", "host1", hosted_engine=True),
        vm("idle"),
        vm("spare"),
        vm("manual", "host2", migratable=False),
        vm("stuck", "host1", status="paused"),
        vm("silent", "host1", status="not_responding"),
        vm("remote", "far", cluster="cluster2"),
        group("apart", APART, "web1 web3", vm_labels=("backend",), priority=2.5),
        group("together", TOGETHER, "web1 web2"),
        group(
            "near", DISABLED, "db1", hosts_rule=SOFT_TOGETHER, hosts="host1 host2", host_labels=("backend",)
        ),
        label("backend", "db1 idle", "host2"),
        label("empty"),
    ),
    data_centers=(DataCenter(id="dc1", name="DC"),),
    networks=(Network(id="net1", name="ovirtmgmt"), Network(id="net2", name="storage")),
    vnic_profiles=(VnicProfile(id="vp1", name="mgmt", network="net1"),),
)
