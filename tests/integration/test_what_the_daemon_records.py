"""The enforcer's daemon among real processes records the keys with which VMs start."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ovirt_placement.store.keys import KeyStore
from tests import builders as build
from tests.integration.world import World, running
from tests.stored import put_keys

pytestmark = pytest.mark.system

#: Left to itself, the daemon would look again when all tests are over; it observes, which is the default.
SELDOM = "[enforcer]\ninterval_seconds = 3600\n"

#: Each host is an island of its own.
ISLAND = {"h1": 1.0, "h2": 2.0, "h3": 3.0}
KEYS = (
    build.key("Before", level="cluster", key_class="be", resource=build.CLUSTER),
    *(build.node_key(host, "SAN", value, weight=60, sticky=True) for host, value in ISLAND.items()),
)
IDLE_AND_BUSY = build.snapshot(*map(build.host, ISLAND), build.vm("starts"), build.vm("stays", "h1"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running(tmp_path, IDLE_AND_BUSY, more=SELDOM, proxy=False) as opened:
        yield opened


@pytest.fixture
def islands(world: World) -> Iterator[Callable[[], dict[str, float]]]:
    """The islands of the VMs that the store remembers to run."""
    store = KeyStore(world.store_url, engine="default", patience_seconds=30)
    put_keys(store, KEYS)

    def found() -> dict[str, float]:
        records = store.records()
        assert all(record.keys == (("Before", 1.0),) for record in records.frozen_keys)
        value = {copy.vm: copy.value for copy in records.sticky_copies}
        return {record.vm: value[record.vm] for record in records.frozen_keys}

    yield found
    store.close()


def test_keys_follow_the_events_and_wait_for_no_cycle(
    world: World, islands: Callable[[], dict[str, float]]
) -> None:
    world.publish()
    assert "(mode observe)" in world.enforce()
    world.until(lambda: islands() == {"stays": 1.0}, "the first look")
    for host in ("h2", "h3"):
        world.start("starts", host)
        world.until(lambda host=host: islands().get("starts") == ISLAND[host], "the record of a start")
        world.stop("starts")
        world.until(lambda: islands() == {"stays": 1.0}, "the end of a record")
    assert world.stop_enforcing() == 0
