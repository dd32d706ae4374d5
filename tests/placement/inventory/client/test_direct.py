"""Reading the engine without a service: with what placement keys refer to, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.config import EngineSettings
from ovirt_placement.inventory.direct import DirectReader
from ovirt_placement.inventory.on_demand import Demands, referred
from ovirt_placement.model import Disk, Network, Nic, Snapshot, VnicProfile
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests import builders as build
from tests.configuration import write_password

STATE = replace(
    build.snapshot(
        build.host("h"),
        build.vm(
            "v",
            "h",
            owner="ann",
            disks=(Disk(id="d", bootable=True, profile="fast"),),
            nics=(Nic(id="n", name="nic1", vnic_profile="p"),),
        ),
    ),
    networks=(Network(id="net", name="net"),),
    vnic_profiles=(VnicProfile(id="p", name="p", network="net"),),
)
FOREVER = 3600.0


@pytest.fixture
def server() -> Iterator[Server]:
    running = serve(Engine.from_snapshot(STATE, clock=datetime(2026, 1, 1, tzinfo=UTC), settings=PROMPT))
    yield running
    running.close()


@pytest.fixture
def reader(server: Server, tmp_path: Path) -> Iterator[DirectReader]:
    password = write_password(tmp_path)
    settings = EngineSettings(url=server.api_url, username="admin@internal", password_file=password)
    found = DirectReader(settings)
    yield found
    found.close()


def read(reader: DirectReader, *levels: str, max_age: float = 0.0) -> Snapshot:
    found = reader.read(max_age, time.monotonic() + 30, Demands(referred(levels)))
    assert found is not None
    return found


def test_nothing_is_asked_for_that_no_key_refers_to(server: Server, reader: DirectReader) -> None:
    server.disturbances.add(
        Disturbance(path="disk|nics|permissions|tags|networks|vnicprofiles", status=500, times=None)
    )
    (vm,) = read(reader, "cluster", "server", "image", "server_offer").vms
    assert (vm.disks, vm.nics, vm.owner) == ((), (), None)


@pytest.mark.parametrize("offer", ["", "_offer"])
def test_what_keys_refer_to_is_there(reader: DirectReader, offer: str) -> None:
    (reported,) = STATE.vms
    (vm,) = read(reader, f"disk{offer}").vms
    assert (vm.disks, vm.nics, vm.owner) == (reported.disks, (), None)
    (vm,) = read(reader, f"customer{offer}").vms
    assert (vm.disks, vm.nics, vm.owner) == ((), (), "ann")
    found = read(reader, f"network{offer}")
    assert found.vms[0].nics == reported.nics
    assert (found.networks, found.vnic_profiles) == (STATE.networks, STATE.vnic_profiles)


def test_a_snapshot_that_lacks_what_a_new_key_refers_to_is_not_young_enough(reader: DirectReader) -> None:
    first = read(reader, "disk")
    assert read(reader, "disk", max_age=FOREVER) is first
    assert read(reader, max_age=FOREVER) is first
    second = read(reader, "disk", "nic", max_age=FOREVER)
    assert second is not first
    assert second.vms[0].nics == STATE.vms[0].nics
    assert read(reader, "nic", max_age=FOREVER) is second
