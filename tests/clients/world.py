"""The engine that these clients meet: a data center as they expect one, and the process that serves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import trustme
from demo.processes import Processes, address

from ovirt_placement.model import DataCenter, Disk, Network, Nic, Snapshot, VnicProfile, state_file
from tests.builders import APART, cluster, group, host, label, snapshot, vm

WORLD: Snapshot = msgspec.structs.replace(
    snapshot(
        cluster(
            name="Default",
            data_center="dc1",
            scheduling_properties={"MaxFreeMemoryForOverUtilized": "256"},
        ),
        host("host1", name="alpha", free_mb=200_000, memory_mb=262_144, tags=("rack1",)),
        host("host2", name="beta", free_mb=200_000, memory_mb=262_144),
        vm(
            "web",
            "host1",
            memory_mb=1024,
            instance_type="small",
            tags=("front",),
            disks=(Disk(id="root", bootable=True),),
            nics=(Nic(id="nic1", name="eth0", vnic_profile="vp1"),),
        ),
        vm("idle", memory_mb=1024),
        group("apart", APART, "web idle"),
        label("ssd", "web", "host1"),
    ),
    data_centers=(DataCenter(id="dc1", name="DC"),),
    networks=(Network(id="net1", name="ovirtmgmt"),),
    vnic_profiles=(VnicProfile(id="vp1", name="ovirtmgmt", network="net1"),),
)


@contextmanager
def served(folder: Path, listen: str = "127.0.0.1:0", *, world: Snapshot = WORLD) -> Iterator[str]:
    """Serve an engine over HTTPS, twenty times as fast as life; gives the URL of its API.

    The certificate of its authority is `ca.pem` in the folder.
    """
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "chain.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "state.json").write_bytes(state_file.dumps(world))
    options = {
        "--listen": listen,
        "--state": str(folder / "state.json"),
        "--tls-certificate": str(folder / "chain.pem"),
        "--tls-key": str(folder / "key.pem"),
        "--time-scale": "20",
    }
    with Processes(folder) as processes:
        words = [word for option in options.items() for word in option]
        line = processes.start("simulator", ["ovirt-simulator", "run", *words])
        yield f"{address(line)}/ovirt-engine/api"
