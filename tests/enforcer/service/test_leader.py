"""Who leads knows it without the database, and who was stopped for long finds out before it acts."""

import logging
import threading

import pytest

from ovirt_enforcer.service.leader import Leader, boot_clock, own_name
from ovirt_placement.store.enforcer.leader import LeaseStore
from tests.placement.databases import database, set_clock
from tests.placement.store.conftest import Opening
from tests.proxy.running import eventually

LEASE = 30.0
LOOK = LEASE / 3


class World:
    """A store, enforcers, and time that passes for both alike unless a test says otherwise."""

    def __init__(self, url: str, opening: Opening) -> None:
        self.url, self._opening = url, opening
        self.now = 1000.0
        self.reported: list[tuple[str, int]] = []

    def enforcer(self, name: str) -> Leader:
        leases = self._opening(LeaseStore, patience_seconds=0.05)
        return Leader(
            leases, name, LEASE, lambda: self.now, lambda epoch: self.reported.append((name, epoch))
        )

    def sleep(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self.now += seconds
        self.set_database_clock(seconds)

    def set_database_clock(self, seconds: float) -> None:
        set_clock(self.url, seconds)


@pytest.fixture
def world(url: str, opening: Opening) -> World:
    return World(url, opening)


def test_one_leads_and_the_other_watches(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    assert one.tend()
    assert not other.tend()
    assert (one.epoch, other.epoch) == (1, 0)
    assert (one.known, other.known) == ("one", "one")
    for _ in range(20):
        world.sleep(one.seconds_until_due())
        assert one.tend()
        assert not other.tend()
    assert world.reported == [("one", 1)]


def test_the_database_is_asked_when_it_is_due_and_not_before(world: World) -> None:
    one = world.enforcer("one")
    one.tend()
    assert one.seconds_until_due() == LOOK
    with database(world.url) as connection:
        connection.exec_driver_sql("DELETE FROM leases")
    world.now += LOOK - 1
    assert one.tend()
    world.now += 1
    assert not one.tend()


def test_when_the_leader_dies_the_other_leads_within_a_lease(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    waited = 0.0
    while not other.tend():
        waited += (seconds := max(other.seconds_until_due(), 0.001))
        world.sleep(seconds)
    assert LEASE - 1 <= waited <= LEASE + 1
    assert other.epoch == 2
    assert not one.tend()
    assert not one.tend()
    assert world.reported == [("one", 1), ("other", 2), ("one", 0)]


def test_who_steps_down_is_followed_at_the_next_look(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    other.tend()
    one.step_down()
    assert (one.epoch, one.tend()) == (0, False)
    world.sleep(other.seconds_until_due())
    assert other.tend()
    one.step_down()  # twice takes nothing from the other
    world.sleep(LOOK)
    assert other.tend()
    assert not one.tend()


def test_who_was_stopped_for_a_lease_leads_no_more_and_asks_nobody_for_that(world: World) -> None:
    one = world.enforcer("one")
    one.tend()
    assert one.still_leads(1)
    world.now += LEASE  # the boot clock alone: the database is slow
    assert (one.epoch, one.still_leads(1)) == (0, False)


def test_near_its_end_a_lease_is_renewed_before_a_request(world: World) -> None:
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    world.sleep(LEASE - 1)
    assert one.still_leads(1)
    world.sleep(LEASE - 1)
    assert not other.tend()
    assert one.still_leads(1)


def test_near_its_end_a_lease_that_another_has_is_seen_before_a_request(world: World) -> None:
    """The database's clock jumped, so the other took over though the boot clock says that it is too early."""
    one, other = world.enforcer("one"), world.enforcer("other")
    one.tend()
    world.set_database_clock(LEASE)
    assert other.tend()
    world.now += LEASE - 1
    assert not one.still_leads(1)


def test_a_later_epoch_is_another(world: World) -> None:
    """What was decided before another may have led is not done, though the same process leads again."""
    one = world.enforcer("one")
    one.tend()
    world.sleep(LEASE)
    assert not one.tend()
    assert one.tend()
    assert one.epoch == 2
    assert not one.still_leads(1)
    assert one.still_leads(2)


@pytest.mark.system
def test_without_the_database_it_leads_until_the_lease_ends(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one = world.enforcer("one")
    one.tend()
    with database(world.url) as holder:
        holder.exec_driver_sql("BEGIN EXCLUSIVE")
        while world.now < 1000.0 + LEASE - 0.001:
            assert one.tend()
            assert one.still_leads(1)
            world.now = min(world.now + one.seconds_until_due(), 1000.0 + LEASE - 0.001)
        world.now = 1000.0 + LEASE
        assert not one.tend()
        assert not one.still_leads(1)
    world.sleep(LEASE)
    one.tend()
    world.sleep(one.seconds_until_due())
    assert one.tend()
    assert one.epoch == 2
    complaints = [record for record in caplog.records if "cannot be looked at" in record.getMessage()]
    assert len(complaints) == 1


@pytest.mark.system
def test_a_thread_keeps_the_lease_of_who_is_busy_and_not_of_who_hangs(opening: Opening) -> None:
    hung = threading.Event()
    busy, other = (Leader(opening(LeaseStore), name, 1.5) for name in ("busy", "other"))
    assert busy.tend()
    first_end = boot_clock() + 1.5
    busy.tend_concurrently(hung.is_set)
    eventually(lambda: boot_clock() > first_end)
    assert not other.tend()
    assert busy.still_leads(1)
    hung.set()
    eventually(other.tend)
    assert busy.epoch == 0
    other.step_down()
    busy.step_down()


def test_names_distinguish_processes() -> None:
    assert len({own_name() for _ in range(100)}) == 100
