"""The keeper among real processes: it follows the engine's events, and makes up for what it did not see."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_placement.model import Nic, PlacementKey, Snapshot
from ovirt_placement.store.keys import KeyStore
from tests import builders as build
from tests.integration.world import World, running
from tests.placement.databases import database
from tests.stored import put_keys

#: Left to itself, the daemon would look again when all tests are over.
SELDOM = "[enforcer]\ninterval_seconds = 3600\n"
#: However long the store is locked, the daemon leads on, and so follows what it learns of.
LEADING_ON = f"{SELDOM}lease_seconds = 3600\n"

HOSTS = ("h1", "h2", "h3")
#: Each host is an island of its own.
ISLAND = {host: float(number) for number, host in enumerate(HOSTS, 1)}
BEFORE, AFTER = "Before", "After"


def state() -> Snapshot:
    """VMs that are down, and VMs that run, each named for what will happen to it."""
    idle = ("starts", "starts-and-moves", "comes-and-goes", "first", "second")
    busy = ("stays", "moves", "stops", "rests", "restarts", "rests-and-resumes")
    return build.snapshot(
        *(build.host(host) for host in HOSTS),
        *(build.vm(name) for name in idle),
        *(build.vm(name, "h1", nics=(Nic(id=f"{name}-nic", name="nic1"),)) for name in busy),
    )


def customer_key(name: str) -> PlacementKey:
    return PlacementKey(
        level="cluster", resource=build.CLUSTER, key_class="be", name=name, value=1.0, weight=5.0
    )


ISLANDS = tuple(
    PlacementKey(
        level="node", resource=host, key_class="system", name="SAN", value=value, weight=60.0, sticky=True
    )
    for host, value in ISLAND.items()
)


class Records:
    """What the store remembers of VMs."""

    def __init__(self, url: str) -> None:
        self.store = KeyStore(url, engine="default", patience_seconds=30)
        self.url = url

    def frozen(self) -> dict[str, list[str]]:
        """The names that each VM started with."""
        found = self.store.records().frozen
        return {record.vm: [name for name, _ in record.keys] for record in found}

    def islands(self) -> dict[str, float]:
        return {copy.vm: copy.value for copy in self.store.records().copies}

    def written(self, vm: str) -> float:
        """When the record of a VM was written, by the database's clock."""
        with database(self.url) as connection:
            found = connection.exec_driver_sql("SELECT vm, recorded FROM frozen_keys").all()
        return float(dict(found)[vm])


@pytest.fixture
def settings() -> str:
    return SELDOM


@pytest.fixture
def world(tmp_path: Path, settings: str) -> Iterator[World]:
    with running(tmp_path, state(), more=settings, proxy=False) as opened:
        yield opened


@pytest.fixture
def records(world: World) -> Iterator[Records]:
    found = Records(world.store_url)
    put_keys(found.store, [*ISLANDS, customer_key(BEFORE)])
    yield found
    found.store.close()


@pytest.mark.system
def test_it_follows_the_events_and_waits_for_no_cycle(world: World, records: Records) -> None:
    """In a dry run, which is the default, as well: it migrates nothing."""
    world.publish()
    assert "(mode observe)" in world.enforce()
    world.until(lambda: "stays" in records.frozen(), "the first look")
    assert "starts" not in records.frozen()
    for host in ("h2", "h3"):
        world.start("starts", host)
        world.until(lambda: "starts" in records.frozen(), "the record of a start")
        assert records.islands()["starts"] == ISLAND[host]
        world.stop("starts")
        world.until(lambda: "starts" not in records.frozen(), "the end of a record")
    assert world.stop_enforcing() == 0


@pytest.mark.system
def test_it_makes_up_for_its_absence(world: World, records: Records) -> None:
    world.publish()
    world.enforce()
    running_before = {"stays", "moves", "stops", "rests", "restarts", "rests-and-resumes"}
    world.until(lambda: records.frozen().keys() == running_before, "the records of all that runs")
    world.until(lambda: len(records.islands()) == len(running_before), "the copies")
    untouched = {vm: records.written(vm) for vm in ("stays", "moves")}
    world.kill_enforcer()

    put_keys(records.store, [customer_key(AFTER)])
    world.start("starts", "h2")
    world.start("starts-and-moves", "h2")
    world.migrate("starts-and-moves", "h3")
    world.start("comes-and-goes", "h2")
    world.stop("comes-and-goes")
    world.migrate("moves", "h3")
    world.stop("stops")
    world.suspend("rests")
    world.stop("restarts")
    world.start("restarts", "h3")
    world.suspend("rests-and-resumes")
    world.start("rests-and-resumes", "h2")
    assert records.frozen().keys() == running_before

    world.enforce()
    again = [AFTER, BEFORE]
    world.until(
        lambda: (
            records.frozen()
            == {
                "stays": [BEFORE],
                "moves": [BEFORE],
                "starts": again,
                "starts-and-moves": again,
                "restarts": again,
                "rests-and-resumes": again,
            }
        ),
        "the records that are right",
    )
    assert records.islands() == {
        **dict.fromkeys(("stays", "moves", "stops", "rests"), ISLAND["h1"]),
        "starts": ISLAND["h2"],
        "starts-and-moves": ISLAND["h2"],  # where it started, not where it is
        "restarts": ISLAND["h3"],
        "rests-and-resumes": ISLAND["h2"],
    }
    assert {vm: records.written(vm) for vm in untouched} == untouched


@pytest.mark.system
def test_without_an_inventory_service_it_records_what_the_enforcer_reads(
    world: World, records: Records
) -> None:
    world.enforce()
    world.until(lambda: "stays" in records.frozen(), "the first look")
    world.start("first", "h2")
    world.kill_enforcer()
    world.enforce()
    world.until(lambda: records.islands().get("first") == ISLAND["h2"], "the record of a start")


@pytest.mark.system
@pytest.mark.parametrize("settings", [LEADING_ON], ids=["leading on"])
def test_a_store_that_is_locked_for_long_costs_no_record(world: World, records: Records) -> None:
    """Other users of the store may complain as well; what counts is that the record was refused."""

    def keeper_says(words: str) -> bool:
        name = f"placement keys of cluster {build.CLUSTER}: "
        return any(name in line and words in line for line in world.enforcer_log.splitlines())

    world.publish()
    world.enforce()
    world.until(lambda: "stays" in records.frozen(), "the first look")
    with database(records.url) as lock:
        lock.exec_driver_sql("UPDATE key_revision SET revision = revision")
        world.start("first", "h2")
        world.until(lambda: keeper_says("database is locked"), "a complaint")
        world.start("second", "h3")
    world.until(lambda: {"first", "second"} <= records.frozen().keys(), "the records of both")
    assert (records.islands()["first"], records.islands()["second"]) == (ISLAND["h2"], ISLAND["h3"])
    world.until(lambda: keeper_says("works again"), "the end of the complaint")


@pytest.mark.system
def test_keys_on_what_is_read_late_are_not_missed(world: World, records: Records) -> None:
    """Daemon and inventory service start together, and the reading of NICs takes its time."""
    on_nic = PlacementKey(
        level="nic", resource="stays-nic", key_class="customer", name="OnNic", value=1.0, weight=5.0
    )
    put_keys(records.store, [on_nic])
    world.delay("/vms[?].*nics", 5)
    world.publish()
    world.enforce()
    world.until(lambda: "stays" in records.frozen(), "the record")
    assert records.frozen()["stays"] == [BEFORE, "OnNic"]
