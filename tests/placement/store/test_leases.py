"""One holds the lease at a time, by the database's clock, and what another epoch would write is refused."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from ovirt_placement.store.enforcer.intents import Intent, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.enforcer.observations import Membership, MembershipChange, MembershipStore, Seen
from ovirt_placement.store.keys import KeyStore, Run
from ovirt_placement.store.sql.access import LeaseLost
from tests.placement.databases import database, set_clock
from tests.placement.store.conftest import Opening, at_once
from tests.stored import prepared

LONG = 600.0
#: As SQLite gives nobody a turn, endless writers may keep another waiting for as long as they write.
_WRITES = 100


@pytest.fixture
def leases(url: str) -> Iterator[tuple[LeaseStore, LeaseStore]]:
    """The same lease over two connections."""
    one, other = (LeaseStore(url, engine="default", patience_seconds=5) for _ in range(2))
    yield one, other
    one.close()
    other.close()


@pytest.fixture
def store(opening: Opening) -> Store:
    return opening(Store)


def prepare(store: Store, epoch: int, name: str = "v1") -> Intent:
    return prepared(store, vm=name, cluster="c", source="h1", target="h2", correlation_id=name, epoch=epoch)


def test_the_first_takes_it_and_the_other_waits_until_it_has_expired(
    leases: tuple[LeaseStore, LeaseStore], url: str
) -> None:
    one, other = leases
    assert one.read() is None
    assert one.take_lease("one", LONG) == 1
    assert other.take_lease("other", LONG) is None
    set_clock(url, LONG - 10)
    held = other.read()
    assert held is not None
    assert (held.owner, held.epoch) == ("one", 1)
    assert 0 < held.left_seconds <= 10
    assert other.take_lease("other", LONG) is None
    set_clock(url, 10)
    assert other.take_lease("other", LONG) == 2
    assert not one.renew(1, LONG)
    assert one.take_lease("one", LONG) is None


def test_who_renews_keeps_it(leases: tuple[LeaseStore, LeaseStore], url: str) -> None:
    one, other = leases
    one.take_lease("one", LONG)
    for _ in range(3):
        set_clock(url, LONG - 10)
        assert one.renew(1, LONG)
        assert other.take_lease("other", LONG) is None


def test_what_has_expired_is_not_renewed_though_nobody_came(
    leases: tuple[LeaseStore, LeaseStore], url: str
) -> None:
    one, _ = leases
    one.take_lease("one", LONG)
    set_clock(url, LONG + 1)
    assert not one.renew(1, LONG)
    assert one.take_lease("one", LONG) == 2


def test_who_lost_the_answer_takes_its_own_again(leases: tuple[LeaseStore, LeaseStore]) -> None:
    one, other = leases
    assert (one.take_lease("one", LONG), one.take_lease("one", LONG)) == (1, 2)
    assert other.take_lease("other", LONG) is None


def test_what_is_released_is_free_at_once(leases: tuple[LeaseStore, LeaseStore]) -> None:
    one, other = leases
    one.take_lease("one", LONG)
    one.release(1)
    assert other.take_lease("other", LONG) == 2
    one.release(1)  # too late: it is the other's now
    assert one.take_lease("one", LONG) is None


def test_a_clock_that_was_set_back_keeps_nobody_out_for_long(
    leases: tuple[LeaseStore, LeaseStore], url: str
) -> None:
    one, other = leases
    one.take_lease("one", LONG)
    set_clock(url, -LONG / 2)  # who leads goes on
    assert other.take_lease("other", LONG) is None
    assert one.renew(1, LONG)
    set_clock(url, -100 * LONG)
    held = other.read()
    assert held is not None
    assert held.left_seconds == 0
    assert other.take_lease("other", LONG) == 2


def test_of_many_who_come_at_once_one_gets_it(url: str) -> None:
    for epoch in range(1, 6):
        several = [LeaseStore(url, engine="default", patience_seconds=30) for _ in range(6)]
        answers = at_once(6, lambda number, several=several: several[number].take_lease(str(number), LONG))
        assert sorted(answers, key=str) == [epoch, None, None, None, None, None]
        several[0].release(epoch)
        for one in several:
            one.close()


def test_an_intent_is_written_under_the_epoch_that_lasts_and_no_other(
    leases: tuple[LeaseStore, LeaseStore], store: Store, url: str
) -> None:
    one, other = leases
    with pytest.raises(LeaseLost, match="epoch 1 of the lease of engine default is over"):
        prepare(store, 1)
    one.take_lease("one", LONG)
    assert prepare(store, 1).vm == "v1"
    set_clock(url, LONG)
    for epoch in (1, 2):
        with pytest.raises(LeaseLost):
            prepare(store, epoch, "v2")
    other.take_lease("other", LONG)
    with pytest.raises(LeaseLost):
        prepare(store, 1, "v2")
    assert prepare(store, 2, "v2").vm == "v2"
    assert [intent.vm for intent in store.open_intents()] == ["v1", "v2"]


@pytest.mark.system
def test_under_contention_nothing_is_written_under_an_epoch_that_was_followed(
    leases: tuple[LeaseStore, LeaseStore], url: str
) -> None:
    """Four write under the first epoch as fast as they can while a fifth ends it: the order shows it."""
    one, other = leases
    one.take_lease("one", LONG)
    stores = [Store(url, engine="default", patience_seconds=30) for _ in range(5)]
    followed = threading.Event()

    def follow() -> str:
        prepare(stores[4], 1, "warm")
        one.release(1)
        epoch = other.take_lease("other", LONG)
        return prepare(stores[4], epoch or 0, "after").vm

    def write(number: int) -> str:
        if number == 4:
            try:
                return follow()
            finally:
                followed.set()
        with suppress(LeaseLost):
            for attempt in range(_WRITES):
                prepare(stores[number], 1, f"{number}-{attempt}")
            followed.wait()
            prepare(stores[number], 1, f"{number}-late")
            return "never lost"
        return "lost"

    assert sorted(map(str, at_once(5, write))) == ["after", "lost", "lost", "lost", "lost"]
    assert [intent.vm for intent in stores[0].open_intents()][-1] == "after"
    for store in stores:
        store.close()


def test_keepers_write_under_an_epoch_too(leases: tuple[LeaseStore, LeaseStore], url: str) -> None:
    one, other = leases
    one.take_lease("one", LONG)
    keys = KeyStore(url, engine="default", patience_seconds=5, epoch=lambda: 1)
    members = MembershipStore(url, engine="default", patience_seconds=5, epoch=lambda: 1)
    seen = MembershipChange(seen=(Seen("v1", "c1", "blue", (Membership("group", "g", "g"),)),))  # type: ignore[arg-type]
    writes: list[Callable[[], object]] = [
        lambda: keys.begin_runs([Run("v1", 1.0, (), ())]),
        lambda: keys.mark_missing(["v1"]),
        lambda: members.change(seen),
        lambda: members.mark_reported("v1", 1.0),
        lambda: keys.end_runs(["v1"]),
        lambda: keys.forget_vms(["v1"]),
    ]
    for write in writes:
        write()
    one.release(1)
    other.take_lease("other", LONG)
    for write in writes:
        with pytest.raises(LeaseLost):
            write()
    assert keys.runs() == {}
    assert keys.all_keys() == ()
    keys.close()
    members.close()


@pytest.mark.system
def test_who_is_stopped_while_it_writes_keeps_the_lease_from_others_only_for_a_while(
    server: str,
) -> None:
    """PostgreSQL ends its transaction; when it wakes, what it was about to write is not written."""
    mine = LeaseStore(server, engine="stopped", patience_seconds=30)
    mine.take_lease("one", LONG)
    program = f"""
import os, signal, sqlalchemy
from ovirt_placement.store.sql.database import StoreAway
from ovirt_placement.store.enforcer.intents import Store
from tests.stored import prepared

def stop(connection, cursor, statement, *_):
    if statement.startswith("INSERT"):
        print("stops", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)

sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", stop)
store = Store({server!r}, engine="stopped", patience_seconds=30)
try:
    prepared(store, vm="v", cluster="c", source="a", target="b", correlation_id="x", epoch=1)
except StoreAway as away:
    print("away", away)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stops\n"
        mine.release(1)  # waits for the lock
        assert mine.take_lease("other", LONG) == 2
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline().startswith("away")
    store = Store(server, engine="stopped", patience_seconds=30)
    assert store.open_intents() == ()
    store.close()
    mine.close()
    with database(server) as connection:
        connection.exec_driver_sql("DELETE FROM leases")
