"""Who leads: one holds the lease at a time; its cycles and settings, and nothing under another epoch."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from ovirt_placement.store.enforcer.intents import Intent, Store
from ovirt_placement.store.enforcer.leader import (
    Cycle,
    CycleStore,
    EnforcerSettingsStore,
    LeaseStore,
    ViolatedRuleStore,
)
from ovirt_placement.store.enforcer.observations import (
    Membership,
    MembershipChange,
    MembershipStore,
    SampleStore,
    Seen,
)
from ovirt_placement.store.keys import KeyStore, Run
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_placement.store.sql.schema import violated_rules
from ovirt_placement.store.user_actions import UserAction, UserActionStore
from tests.placement.databases import database, set_clock
from tests.placement.store.conftest import Opening, at_once
from tests.stored import prepared

LONG = 600.0
#: As SQLite gives nobody a turn, endless writers may keep another waiting for as long as they write.
_WRITES = 100


@pytest.fixture
def leases(opening: Opening) -> tuple[LeaseStore, LeaseStore]:
    """The same lease for two."""
    return opening(LeaseStore), opening(LeaseStore)


def prepare(store: Store, epoch: int, name: str = "v1") -> Intent:
    return prepared(store, name, name, epoch=epoch)


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


def test_who_renews_keeps_it_and_what_has_expired_is_not_renewed_though_nobody_came(
    leases: tuple[LeaseStore, LeaseStore], url: str
) -> None:
    one, other = leases
    one.take_lease("one", LONG)
    for _ in range(3):
        set_clock(url, LONG - 10)
        assert one.renew(1, LONG)
        assert other.take_lease("other", LONG) is None
    set_clock(url, LONG + 1)
    assert not one.renew(1, LONG)
    assert one.take_lease("one", LONG) == 2


def test_who_lost_the_answer_takes_its_own_again_and_what_is_released_is_free_at_once(
    leases: tuple[LeaseStore, LeaseStore],
) -> None:
    one, other = leases
    assert (one.take_lease("one", LONG), one.take_lease("one", LONG)) == (1, 2)
    assert other.take_lease("other", LONG) is None
    one.release(2)
    assert other.take_lease("other", LONG) == 3
    one.release(2)  # too late: it is the other's now
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


def test_of_many_who_come_at_once_one_gets_it(opening: Opening) -> None:
    several = [opening(LeaseStore) for _ in range(6)]
    for epoch in range(1, 6):
        answers = at_once(6, lambda number: several[number].take_lease(str(number), LONG))
        assert sorted(answers, key=str) == [epoch, None, None, None, None, None]
        several[0].release(epoch)


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
    leases: tuple[LeaseStore, LeaseStore], opening: Opening
) -> None:
    """Four write under the first epoch as fast as they can while a fifth ends it: the order shows it."""
    one, other = leases
    one.take_lease("one", LONG)
    stores = [opening(Store) for _ in range(5)]
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


def test_keepers_write_under_an_epoch_too(leases: tuple[LeaseStore, LeaseStore], opening: Opening) -> None:
    one, other = leases
    one.take_lease("one", LONG)
    keys = opening(KeyStore, epoch=lambda: 1)
    members = opening(MembershipStore, epoch=lambda: 1)
    samples, cycles = opening(SampleStore, epoch=lambda: 1), opening(CycleStore, epoch=lambda: 1)
    intents = opening(Store, epoch=lambda: 1)
    seen = MembershipChange(seen=(Seen("v1", "c1", "blue", (Membership("group", "g", "g"),)),))  # type: ignore[arg-type]
    writes: list[Callable[[], object]] = [
        lambda: keys.begin_runs([Run("v1", 1.0, (), ())]),
        lambda: keys.mark_missing(["v1"]),
        lambda: members.change(seen),
        lambda: members.mark_reported("v1", 1.0),
        lambda: keys.end_runs(["v1"]),
        lambda: keys.forget_vms(["v1"]),
        lambda: samples.record("c1", "blue", hard=1, soft=0),
        lambda: cycles.record(Cycle(epoch=1, error=None)),
        lambda: intents.forget(older_than_seconds=3600.0),
    ]
    for write in writes:
        write()
    one.release(1)
    other.take_lease("other", LONG)
    for write in writes:
        with pytest.raises(LeaseLost):
            write()
    assert (keys.runs(), keys.all_keys()) == ({}, ())
    assert [one.hard for one in samples.samples(since_seconds=3600.0).samples] == [1]


@pytest.mark.system
def test_who_is_stopped_while_it_writes_keeps_the_lease_from_others_only_for_a_while(server: str) -> None:
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


@pytest.fixture
def violated(opening: Opening) -> ViolatedRuleStore:
    return opening(ViolatedRuleStore)


def look(violated: ViolatedRuleStore, *rules: str, **how: Any) -> dict[str, int]:
    violated.record_violated("c1", rules, **{"cycle_seconds": 60.0, "enough": 3, **how})
    return violated.cycles()


def wait(url: str, seconds: float) -> None:
    with database(url) as connection:
        table = violated_rules
        connection.execute(table.update().values(counted=table.c.counted - seconds))


def test_a_cycle_counts_once_and_no_more_than_is_asked_for(violated: ViolatedRuleStore, url: str) -> None:
    assert look(violated, "a", "b") == {"a": 1, "b": 1}
    wait(url, 50)
    assert look(violated, "a", "b") == {"a": 1, "b": 1}
    wait(url, 9)
    assert look(violated, "a", "b", "c") == {"a": 2, "b": 2, "c": 1}
    for _ in range(3):
        wait(url, 60)
        found = look(violated, "a")
    assert found == {"a": 3}


def test_what_held_begins_again_and_a_look_is_at_one_cluster(violated: ViolatedRuleStore, url: str) -> None:
    look(violated, "a", "b")
    violated.record_violated("c2", {"z"}, cycle_seconds=60, enough=3)
    wait(url, 60)
    assert look(violated, "b") == {"b": 2, "z": 1}
    wait(url, 60)
    assert look(violated, "a", "b") == {"a": 1, "b": 3, "z": 1}
    assert look(violated) == {"z": 1}


def test_more_rules_than_a_statement_has_parameters_for(violated: ViolatedRuleStore) -> None:
    many = [f"rule {number}" for number in range(1201)]
    assert len(look(violated, *many)) == 1201
    assert look(violated, many[0]) == {many[0]: 1}


class Stage:
    def __init__(self, opening: Opening) -> None:
        self.leases = opening(LeaseStore)
        self.epoch = self.leases.take_lease("one", 600.0)
        self.settings = opening(EnforcerSettingsStore, epoch=lambda: self.epoch or 0)
        self._actions = opening(UserActionStore)

    def record(self, **settings: Any) -> None:
        self.settings.record(self.epoch or 0, settings)

    def sentences(self, after: str = "") -> list[str]:
        """What is said of changes, or of what stands after a word of it."""
        said = (one.sentence.replace(f" on {one.machine} ", " on MACHINE ", 1) for one in self.actions())
        return [one.partition(after)[2] if after else one for one in said]

    def actions(self) -> Sequence[UserAction]:
        return self._actions.actions(since_seconds=600)


@pytest.fixture
def stage(opening: Opening) -> Stage:
    return Stage(opening)


def test_the_first_settings_and_the_same_again_are_no_change(stage: Stage) -> None:
    assert stage.settings.leader_settings() is None
    for _ in range(2):
        stage.record(mode="observe", repair=["hard"], cooldown_seconds=600.0)
    assert stage.sentences() == []
    known = {"mode": "observe", "repair": ["hard"], "cooldown_seconds": 600.0}
    assert stage.settings.leader_settings() == known
    stage.leases.release(1)
    assert stage.settings.leader_settings() is None


def test_each_difference_is_named_with_what_it_was(stage: Stage) -> None:
    stage.record(mode="observe", repair=["hard"], planning_seconds=None, audit_log="/var/log/a")
    stage.record(mode="enforce", repair=["hard", "soft"], planning_seconds=5.0, audit_log="")
    changes = (
        "audit_log empty, before /var/log/a",
        "mode enforce, before observe",
        "planning_seconds 5.0, before not set",
        'repair ["hard","soft"], before ["hard"]',
    )
    (sentence,) = stage.sentences()
    assert sentence == f"ovirt-enforcer on MACHINE leads with changed settings: {'; '.join(changes)}"


def test_of_long_lists_the_entries_in_which_they_differ_are_named(stage: Stage) -> None:
    many = [f"vm-{number}" for number in range(10_000)]
    for names in ([], many, ["web", *many[3:]], [*many[3:], "web"], None):
        stage.record(exclude_vms=names)
    ten, others = ", ".join(many[:10]), ", ".join(many[3:13])
    assert stage.sentences(" exclude_vms ") == [
        f"10,000 entries (with {ten} and 9,990 more), before []",
        "9,998 entries (with web), before 10,000 entries (with vm-0, vm-1, vm-2)",
        "9,998 entries, before 9,998 entries",
        f"not set, before 9,998 entries (with {others} and 9,988 more)",
    ]


def test_entries_may_be_more_than_names(stage: Stage) -> None:
    windows = [{"start": f"0 {hour} * * *", "hours": 1.0, "clusters": ["red"]} for hour in range(24)]
    stage.record(windows=windows)
    stage.record(windows=windows[1:])
    gone = '{"start":"0 0 * * *","hours":1.0,"clusters":["red"]}'
    assert stage.sentences(" windows ") == [f"23 entries, before 24 entries (with {gone})"]


def test_a_clock_that_was_set_back_far_leaves_nobody_leading(stage: Stage, url: str) -> None:
    stage.record(mode="observe")
    set_clock(url, -60_000.0)
    assert (stage.settings.leader_settings(), stage.leases.leader()) == (None, None)


def test_one_that_leads_no_more_records_nothing(stage: Stage) -> None:
    stage.record(mode="observe")
    stage.leases.release(1)
    assert stage.leases.take_lease("other", 600.0) == 2
    with pytest.raises(LeaseLost):
        stage.record(mode="enforce")
    assert (stage.settings.leader_settings(), stage.sentences()) == (None, [])
    stage.epoch = 2
    stage.record(mode="observe")
    assert (stage.settings.leader_settings(), stage.sentences()) == ({"mode": "observe"}, [])
