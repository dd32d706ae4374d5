"""Keys on what hangs on a VM decide where a live engine starts it: with an inventory service, and without.

Each level has a host of its own that a key on that level leads to, and a VM that no other key leads anywhere.
"""

import subprocess
from collections.abc import Iterator
from typing import Any

import ovirtsdk4
import pytest
from msgspec.structs import replace
from ovirtsdk4 import types

from ovirt_placement import config
from ovirt_placement.model import Disk, Network, Nic, PlacementKey, SchedulingPolicy, Snapshot, VnicProfile
from ovirt_placement.store.keys import KeyStore
from tests import builders as build
from tests.configuration import PASSWORD
from tests.integration.world import World, running
from tests.placement.cli.documents import plain
from tests.placement.inventory.running import COMMAND
from tests.stored import put_keys

POLICY = SchedulingPolicy(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 100})
#: What a VM has on each level: something that is named after the level.
VMS: dict[str, dict[str, Any]] = {
    "customer_offer": {"owner": "customer_offer"},
    "customer": {"owner": "customer"},
    "disk_offer": {"disks": (Disk(id="d1", bootable=True, profile="disk_offer"),)},
    "disk": {"disks": (Disk(id="d2", bootable=False), Disk(id="disk", bootable=True))},
    "network_offer": {"nics": (Nic(id="n1", name="nic1", vnic_profile="into-network_offer"),)},
    "network": {"nics": (Nic(id="n2", name="nic1", vnic_profile="into-network"),)},
    "nic_offer": {"nics": (Nic(id="n3", name="nic1", vnic_profile="nic_offer"),)},
    "nic": {"nics": (Nic(id="n4", name="nic10"), Nic(id="nic", name="nic9"))},
}
LEVELS = tuple(VMS)

#: One engine serves all tests of one way to know it.
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("key-levels")]


def state() -> Snapshot:
    networks = ("network_offer", "network", "elsewhere")
    bare = build.snapshot(
        build.cluster(scheduling_policy=POLICY),
        *(build.host(level) for level in (*LEVELS, "nowhere")),
        *(build.vm(f"{level}-vm", **fields) for level, fields in VMS.items()),
        build.vm("bare-vm"),
    )
    return replace(
        bare,
        networks=tuple(Network(id=name, name=name) for name in networks),
        vnic_profiles=(
            VnicProfile(id="nic_offer", name="nic_offer", network="elsewhere"),
            *(VnicProfile(id=f"into-{name}", name=name, network=name) for name in networks),
        ),
    )


def keys() -> Iterator[PlacementKey]:
    for level in LEVELS:
        key = PlacementKey(level=level, resource=level, key_class="system", name=level, value=1, weight=80)
        yield key
        for host in (*LEVELS, "nowhere"):
            yield replace(key, level="node", resource=host, value=int(host == level), weight=None)


@pytest.fixture(scope="module", params=["service", pytest.param("no-service", marks=pytest.mark.system)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("levels"), state()) as made:
        store = KeyStore(made.store_url, engine="default", patience_seconds=30)
        put_keys(store, tuple(keys()))
        store.close()
        if request.param == "service":
            made.publish()
            made.until(lambda: chosen(made, "nic-vm") == ["nic"], "what keys refer to be read")
        yield made


@pytest.fixture
def engine(world: World) -> Iterator[ovirtsdk4.Connection]:
    url = config.load(world.config).engine.url
    with ovirtsdk4.Connection(url, "admin@internal", PASSWORD) as connection:
        yield connection


def chosen(world: World, vm: str) -> list[str]:
    """The hosts that `keys explain` finds best."""
    command = [COMMAND, "keys", "explain", vm, "--json", "--config", str(world.config)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
    found: list[str] = plain(answer.stdout)["choice"]
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_a_key_on_each_level_is_explained_and_leads_to_its_host(world: World, level: str) -> None:
    assert chosen(world, f"{level}-vm") == [level]
    assert world.start(f"{level}-vm") == level


def test_what_a_vm_is_given_counts_with_its_next_start(world: World, engine: ovirtsdk4.Connection) -> None:
    vm = engine.system_service().vms_service().vm_service("bare-vm")
    vm.nics_service().add(types.Nic(name="nic3", vnic_profile=types.VnicProfile(id="nic_offer")))
    assert world.start("bare-vm") == "nic_offer"
    world.stop("bare-vm")
    # A VM stands for the first of its NICs.
    vm.nics_service().add(types.Nic(name="nic1", vnic_profile=types.VnicProfile(id="into-network")))
    assert world.start("bare-vm") == "network"
    world.until_called("runFilters", 2, "bare-vm")
