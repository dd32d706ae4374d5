"""The enforcer's daemon among real processes: which keys VMs start with, and memberships that they lose."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.store.enforcer.observations import MembershipStore
from ovirt_placement.store.keys import KeyStore
from tests import builders as build
from tests.builders import SOFT_TOGETHER
from tests.integration.world import World, running
from tests.placement.cli.documents import parsed
from tests.processes import completed
from tests.stored import put_keys

pytestmark = pytest.mark.system

#: Left to itself, the daemon would look again when all tests are over; it observes, which is the default.
SELDOM = "[enforcer]\ninterval_seconds = 3600\n"
OFTEN = "[enforcer]\ninterval_seconds = 0.2\n"

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


def test_without_an_inventory_service_a_daemon_that_was_killed_makes_up_for_it(
    world: World, islands: Callable[[], dict[str, float]]
) -> None:
    world.enforce()
    world.until(lambda: "stays" in islands(), "the first look")
    world.kill_enforcer()
    world.start("starts", "h2")
    world.enforce()
    world.until(lambda: islands() == {"stays": 1.0, "starts": 2.0}, "the record of a start")


MEMBERS = build.snapshot(
    build.cluster("c1", name="blue"), build.cluster("c2", name="red"), build.host("h1", cluster="c1"),
    build.host("h2", cluster="c2"), *(build.vm(name, cluster="c1") for name in ("web", "peer")),
    build.group("near", SOFT_TOGETHER, "web peer", cluster="c1"),
    build.group("tied", SOFT_TOGETHER, "peer", cluster="c1", vm_labels=("ours",)), build.label("ours", "web"),
)  # fmt: skip


def test_a_lost_membership_is_logged_reported_listed_and_forgotten(tmp_path: Path) -> None:
    with running(tmp_path, MEMBERS, more=OFTEN, proxy=False) as world:

        def lost(*words: str, status: int = 0) -> str:
            asked = ["groups", "lost", *words, "--config", str(world.config)]
            done = completed(main, asked, tmp_path / "command.log", os.environ)
            assert done.returncode == status, done.stderr
            return done.stderr if status else done.stdout

        def remembered() -> int:
            store = MembershipStore(world.store_url, engine="default", patience_seconds=30)
            try:
                return len(store.seen())
            finally:
                store.close()

        assert lost() == "Nothing is lost.\n"
        said = lost("--forget", "web", status=2)
        assert said == 'ovirt-placement: no VM that lost a membership "web"\n'
        world.publish()
        world.enforce()
        world.until(lambda: remembered() == 2, "the memberships")
        world.change_cluster("web", "c2")
        world.until_reported(9802, "VM web left cluster blue", "groups near, tied and affinity label ours")
        assert world.enforcer_log.count("VM web left cluster blue") == 1
        found: dict[str, Any] = parsed(lost("--json"))
        (one,) = found["losses"]
        names = [[each["name"] for each in one[kind]] for kind in ("groups", "labels")]
        assert (one["vm"]["name"], one["cluster"]["name"], names) == (
            "web", "blue", [["near", "tied"], ["ours"]],
        )  # fmt: skip
        assert lost().split("\n")[0].split() == ["VM", "former", "cluster", "groups", "labels", "since"]
        assert lost("--forget", "web").count("web") == 0
        assert lost() == "Nothing is lost.\n"
        assert world.stop_enforcing() == 0
