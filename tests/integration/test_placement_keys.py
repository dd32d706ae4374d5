"""Placement keys at work: an engine that starts and migrates, our proxy with the units, and the keeper.

Each story goes the whole way: the engine asks the proxy, the proxy the units, these the engine and the store,
to which the enforcer's daemon adds what has started and stopped.
"""

from collections.abc import Iterator
from typing import Any

import ovirtsdk4
import pytest

from ovirt_placement.model import PlacementKey, SchedulingPolicy, Snapshot
from ovirt_placement.store.keys import KeyStore
from tests import builders as build
from tests.integration.world import World, running
from tests.stored import put_keys

POLICY = SchedulingPolicy(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 100})

#: One engine serves all of them.
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("placement-keys")]

#: The daemon looks at everything several times a second.
OFTEN = "[enforcer]\ninterval_seconds = 0.2\n"


def cluster(name: str, hosts: int, *vms: dict[str, Any], **first_host: Any) -> list[build.Part]:
    """A cluster with hosts NAME-h1 ... and VMs NAME-a ...; the fields of the first host may differ."""
    return [
        build.cluster(name, scheduling_policy=POLICY),
        build.host(f"{name}-h1", cluster=name, **first_host),
        *(build.host(f"{name}-h{at}", cluster=name) for at in range(2, hosts + 1)),
        *(
            build.vm(f"{name}-{letter}", cluster=name, **vm)
            for letter, vm in zip("abcdef", vms, strict=False)
        ),
    ]


def state() -> Snapshot:
    owned = {"quota": "customer-7", "memory_mb": 2048, "guaranteed_mb": 2048}
    small = {"memory_mb": 5000, "free_mb": 5000}
    return build.snapshot(*cluster("private", 3, owned, {}, owned, **small), *cluster("island", 4, {}))


def on_hosts(cluster: str, name: str, *values: float, weight: float | None = None) -> list[PlacementKey]:
    flags = {"weight": weight, "sticky": weight is not None}
    return [build.node_key(f"{cluster}-h{at}", name, value, **flags) for at, value in enumerate(values, 1)]


KEYS = (
    # Private to customer 7, in both directions.
    *on_hosts("private", "PRIV7", 1, 0, 0),
    *on_hosts("private", "SHARED", 0, 1, 1),
    build.key("PRIV7", 1, -200, "cluster", resource="private"),
    build.key("SHARED", 1, 50, "cluster", resource="private"),
    build.key("PRIV7", 1, 100, "billing_entity", resource="customer-7"),
    build.key("SHARED", 1, -200, "billing_entity", resource="customer-7"),
    # Two islands of storage.
    *on_hosts("island", "SAN", 1, 1, 2, 2, weight=60),
)


class KeyWorld:
    """A world whose store is known, and in which the keeper has seen what has happened."""

    def __init__(self, world: World, store: KeyStore) -> None:
        self.world = world
        self.store = store

    def start(self, vm: str) -> str:
        """Start a VM, and return its host once the keeper has seen it."""
        host = self.world.start(vm)
        self.until_recorded(vm)
        return host

    def stop(self, vm: str) -> None:
        """Stop a VM, until the keeper has seen it."""
        self.world.stop(vm)
        self.world.until(lambda: vm not in self.store.runs(), f"the end of {vm}'s record")

    def until_recorded(self, vm: str) -> None:
        self.world.until(lambda: vm in self.store.runs(), f"the record of {vm}")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyWorld]:
    with running(tmp_path_factory.mktemp("world"), state(), more=OFTEN) as world:
        store = KeyStore(world.store_url, engine="default", patience_seconds=30)
        put_keys(store, KEYS)
        world.enforce()
        yield KeyWorld(world, store)
        store.close()


def test_a_virtual_private_cloud_takes_its_owner_alone_and_its_owner_goes_nowhere_else(
    engine: KeyWorld,
) -> None:
    assert engine.start("private-a") == "private-h1"
    assert engine.start("private-b") in {"private-h2", "private-h3"}
    engine.world.until_called("runFilters", 1, "private-a", "private-b")
    with pytest.raises(ovirtsdk4.Error):  # full: the shared hosts are refused nevertheless
        engine.start("private-c")


def test_a_vm_returns_to_its_island(engine: KeyWorld) -> None:
    island = {"island-h1": 1.0, "island-h2": 1.0, "island-h3": 2.0, "island-h4": 2.0}
    home = island[engine.start("island-a")]
    for _ in range(4):
        engine.stop("island-a")
        copies = engine.store.records().sticky_copies
        assert [copy.value for copy in copies if copy.vm == "island-a"] == [home]
        assert island[engine.start("island-a")] == home
