"""The keeper records each run of a VM once, also one that it missed; and when all of a VM is forgotten."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from ovirt_enforcer.watchers.key_recorder import MISSING_SECONDS, READINGS
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.model import FrozenKeys, Snapshot
from ovirt_placement.model.infrastructure import VM_STATUSES
from ovirt_placement.store.keys import KeyChange, Run
from ovirt_service.errors import UserError
from tests import builders
from tests.builders import engine_event, host, key, snapshot
from tests.enforcer.watchers.keeper_bench import KEYS, SAN1, SAN2, SET, Bench, on_cluster, opened_bench, vm
from tests.placement.databases import database
from tests.stored import put_keys

#: On no host: the run is over.
ENDS = {"down", "suspended", "image_locked"}
#: The start has not succeeded yet.
BEGINS = {"wait_for_launch", "powering_up", "restoring_state"}
#: It runs, however well.
RUNS = {
    "up", "paused", "migrating", "not_responding", "reboot_in_progress", "saving_state", "powering_down",
}  # fmt: skip
#: Nobody knows: its host does not respond, or the engine has no word for it.
UNKNOWN = {"unknown", "unassigned"}

OLD = (("Old", 1.0),)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with opened_bench(tmp_path) as opened:
        yield opened


def started(number: int, host: str, at: float) -> EngineEvent:
    return engine_event(32, id=number, time=at, vm="v", host=host)


def test_every_status_is_one_of_these() -> None:
    assert ENDS | BEGINS | RUNS | UNKNOWN == VM_STATUSES


@pytest.mark.parametrize("status", sorted(VM_STATUSES))
def test_only_a_vm_that_is_on_no_host_loses_its_record(bench: Bench, status: str) -> None:
    bench.store.begin_runs([Run("v", 100.0, OLD, (SAN1,))])
    on = None if status in ENDS else "h2"
    bench.sees(replace(vm(on), status=status, running_since=100.0 if on else None))
    assert bench.frozen == ({} if status in ENDS else {"v": OLD})
    assert bench.copies == (SAN1,)


@pytest.mark.parametrize("status", sorted(VM_STATUSES))
def test_only_a_vm_that_runs_for_sure_is_recorded_at_first_sight(bench: Bench, status: str) -> None:
    on = None if status in ENDS else "h1"
    bench.sees(replace(vm(on), status=status))
    assert (bench.frozen, bench.copies) == (({"v": SET}, (SAN1,)) if status in RUNS else ({}, ()))


def test_to_resume_a_suspended_vm_is_a_start(bench: Bench) -> None:
    bench.store.begin_runs([Run("v", 100.0, OLD, (SAN1,))])
    bench.sees(replace(vm("h1"), status="saving_state", running_since=100.0))
    bench.sees(replace(vm(), status="suspended"))
    assert (bench.frozen, bench.copies) == ({}, (SAN1,))
    bench.sees(replace(vm("h2"), status="restoring_state"))
    assert bench.frozen == {}
    bench.sees(vm("h2", running_since=200.0))
    assert (bench.frozen, bench.copies) == ({"v": SET}, (SAN2,))


def test_a_run_that_nobody_saw_end_is_over_when_another_begins_even_if_that_fails(bench: Bench) -> None:
    bench.store.begin_runs([Run("v", 100.0, OLD, (SAN1,))])
    bench.sees(vm("h2", status="powering_up", running_since=500.0))
    assert (bench.frozen, bench.copies) == ({}, (SAN1,))
    bench.sees(vm())
    assert (bench.frozen, bench.copies) == ({}, (SAN1,))


@pytest.mark.parametrize(
    ("recorded", "shown", "again"),
    [
        (100.0, 100.0, False),
        (100.0, 101.0, False),
        (100.25, 100.0, False),  # an engine that shows the same moment in whole seconds
        (100.0, 106.0, True),
        (100.0, 60.0, True),  # an engine whose clock was set back
        (None, 100.0, True),
        (100.0, None, False),
        (None, None, False),
    ],
)
def test_a_stop_and_a_start_between_two_looks_show_in_when_the_run_began(
    bench: Bench, recorded: float | None, shown: float | None, again: bool
) -> None:
    bench.store.begin_runs([Run("v", recorded, OLD)])
    bench.sees(vm("h1", running_since=shown))
    bench.restart()
    bench.sees(vm("h1", running_since=shown))
    assert bench.frozen == {"v": SET if again else OLD}
    assert bench.store.runs() == {"v": shown if again else recorded}


def test_copies_are_those_of_the_host_where_it_started_not_of_where_it_was_found(bench: Bench) -> None:
    bench.starts = (started(1, "h2", 90.0), started(2, "h1", 100.0))
    bench.sees(vm("h2", running_since=99.0))
    assert bench.copies == (SAN1,)


def test_an_event_of_an_earlier_start_is_not_believed(bench: Bench) -> None:
    bench.starts = (started(1, "h1", 100.0),)
    bench.sees(vm("h2", running_since=500.0))
    assert bench.copies == (SAN2,)


def test_of_a_start_that_it_watched_it_asks_nobody(bench: Bench) -> None:
    for before in (vm(), vm("h1", status="wait_for_launch"), vm("h1", status="powering_up")):
        bench.sees(before)
        bench.sees(vm("h1"))
        assert bench.copies == (SAN1,)
        bench.sees(vm())
    assert bench.readings == 0
    bench.restart()
    bench.sees(vm("h1"))
    assert bench.readings == 1


def away(*_: object) -> NoReturn:
    raise UserError("it is away")


@pytest.mark.parametrize("trouble", ["store", "details", "engine", "lease", "nothing shown"])
def test_of_a_start_that_it_could_not_watch_or_record_it_asks(
    bench: Bench, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw the VM down, and again when the VM had started and moved."""
    bench.starts = (started(1, "h1", 100.0),)
    bench.sees(vm())
    with monkeypatch.context() as failing:
        if trouble == "lease":
            bench.epoch += 1
        elif trouble == "engine":
            bench.keeper.observe_latest(away)
        elif trouble != "nothing shown":
            bench.detailed = trouble != "details"
            if trouble == "store":
                failing.setattr(bench.store, "revision", away)
            bench.sees(vm("h1", running_since=100.0))
    bench.detailed, bench.now = True, 60.0
    bench.sees(vm("h2", running_since=100.0))
    assert bench.copies == (SAN1,)


def test_where_no_host_has_sticky_keys_nobody_is_asked(bench: Bench) -> None:
    bench.store.change(lambda placement: KeyChange(remove=placement), set_by="ann")
    bench.sees(vm("h1"))
    assert (bench.readings, bench.copies) == (0, ())


OTHER = builders.vm("other")


@pytest.fixture
def known(bench: Bench) -> Bench:
    """It remembers the VM."""
    bench.store.begin_runs([Run("v", 100.0, (), (SAN1,))])
    return bench


def let_pass(seconds: float, folder: Path) -> None:
    """Let time pass by the store's clock."""
    with database(f"sqlite:///{folder}/store.db") as connection:
        connection.exec_driver_sql(f"UPDATE missing_vms SET since = since - {seconds}")


def test_a_vm_that_was_missing_for_long_enough_is_forgotten(
    known: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    set_on_it = key("GEN", resource="v")
    put_keys(known.store, [set_on_it])
    for _ in range(READINGS):
        known.sees(OTHER)
    let_pass(MISSING_SECONDS - 60, tmp_path)
    known.sees(OTHER)
    assert known.store.remembered_vms() == {"v"}
    let_pass(61, tmp_path)
    known.sees(OTHER)
    assert (known.store.remembered_vms(), known.store.mark_missing([])) == (set(), {})
    # What people set is theirs to remove.
    assert set(known.store.records().placement_keys) == {*KEYS, set_on_it}
    assert caplog.text.count("forgot VMs that the engine has had no more for a week: v") == 1


def test_a_vm_that_comes_back_is_counted_again(known: Bench, tmp_path: Path) -> None:
    known.sees(OTHER)
    let_pass(MISSING_SECONDS, tmp_path)
    known.sees(vm())
    for _ in range(READINGS + 1):
        known.sees(OTHER)
    assert known.copies == (SAN1,)


def restart_and_look(known: Bench) -> None:
    known.restart()
    known.sees(OTHER)


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda known: known.sees(), id="no VM at all"),
        pytest.param(restart_and_look, id="several processes"),
        pytest.param(lambda known: known.keeper.observe_latest(lambda: snapshot(OTHER)), id="not whole"),
    ],
)
def test_readings_that_prove_nothing_forget_no_vm(
    known: Bench, look: Callable[[Bench], None], tmp_path: Path
) -> None:
    known.sees(OTHER)
    let_pass(MISSING_SECONDS, tmp_path)
    for _ in range(READINGS + 1):
        look(known)
    assert known.copies == (SAN1,)


def test_looking_on_does_not_disturb_who_follows_the_revision(known: Bench) -> None:
    known.sees(OTHER)
    revision = known.store.revision()
    for _ in range(READINGS):
        known.sees(OTHER)
    assert known.store.revision() == revision


def test_a_migration_leaves_both_as_they_are(bench: Bench) -> None:
    bench.sees(vm("h1"))
    put_keys(bench.store, [on_cluster("Group2")])
    bench.sees(vm("h1", status="migrating", migrating_to="h2"))
    bench.sees(vm("h2"))
    assert (bench.frozen, bench.copies) == ({"v": SET}, (SAN1,))


def test_an_edit_counts_from_the_next_start_on(bench: Bench) -> None:
    bench.sees(vm("h1"))
    edited = {"placement_keys": "Repel2:1:-100"}
    bench.sees(replace(vm("h1"), custom_properties=edited))
    assert bench.frozen == {"v": SET}
    bench.sees(vm())
    bench.sees(replace(vm("h2"), custom_properties=edited))
    assert bench.frozen == {"v": (("Group1", 1.0), ("Repel2", 1.0))}
    assert bench.copies == (SAN2,)  # in place of the copy of the same name


def test_a_vm_that_is_not_shown_for_a_moment_keeps_its_record(bench: Bench) -> None:
    bench.store.begin_runs([Run("v", 100.0, OLD)])
    bench.sees(builders.vm("another"))
    bench.sees()
    bench.sees(vm("h1", running_since=100.0))
    assert bench.frozen == {"v": OLD}


def test_looking_again_and_starting_again_change_nothing(bench: Bench) -> None:
    bench.sees(vm("h1"))
    revision = bench.store.revision()
    bench.sees(vm("h1"))
    bench.restart()
    bench.sees(vm("h1"))
    assert bench.store.revision() == revision


@pytest.mark.parametrize("method", ["end_runs", "begin_runs", "records"])
def test_one_clusters_failure_never_ends_anothers(
    bench: Bench, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clusters = (builders.cluster("one"), builders.cluster("two"))
    hosts = (host("a", cluster="one"), host("b", cluster="two"))
    vms = (builders.vm("va", "a", cluster="one"), builders.vm("vb", "b", cluster="two"))
    state = snapshot(*clusters, *hosts, *vms)
    work = getattr(bench.store, method)
    failures = [1]

    def fails_once(*arguments: Any) -> Any:
        if failures:
            failures.pop()
            raise UserError("the store is locked")
        return work(*arguments)

    monkeypatch.setattr(bench.store, method, fails_once)
    bench.keeper.observe(state)
    assert set(bench.frozen) == ({"vb"} if method == "begin_runs" else set())
    assert "the store is locked" in caplog.text
    assert not bench.keeper.needs_retry
    bench.now = 1.0
    assert bench.keeper.needs_retry
    bench.keeper.observe_latest(lambda: state)
    assert set(bench.frozen) == {"va", "vb"}
    assert not bench.keeper.needs_retry


def fails(*_: Any) -> None:
    raise UserError("the store is locked")


def test_what_failed_and_is_not_to_be_done_any_more_is_not_tried_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.store, "begin_runs", fails)
    bench.sees(vm("h1"))
    bench.now = 1.0
    assert bench.keeper.needs_retry
    bench.sees(vm())
    assert not bench.keeper.needs_retry


def test_a_failure_that_lasts_is_reported_once_and_so_is_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with monkeypatch.context() as locked:
        locked.setattr(bench.store, "begin_runs", fails)
        for bench.now in (0.0, 1.0, 3.0):
            bench.sees(vm("h1"))
    bench.now = 7.0
    bench.sees(vm("h1"))
    name = f"placement keys of cluster {builders.CLUSTER}"
    reported = [record.getMessage() for record in caplog.records]
    assert reported == [f"{name}: the store is locked", f"{name}: works again"]


def test_a_property_that_cannot_be_read_is_reported_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    reported = "VM v: custom property placement_keys is ignored: 'Repel1=1'"
    violated = builders.vm("v", "h1", custom_properties={"placement_keys": "Repel1=1"})
    for _ in range(3):
        bench.sees(violated)
    assert caplog.text.count(reported) == 1
    assert bench.frozen == {"v": (("Group1", 1.0),)}
    bench.sees(vm("h1"))
    bench.sees(violated)  # repaired, and violated again
    assert caplog.text.count(reported) == 2


def test_of_a_property_with_a_bad_key_the_others_count(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    text = f"_:1:5,A:1:5,Huge:{'9' * 41}:5,Off:1:0"
    for _ in range(2):
        bench.sees(builders.vm("v", "h1", custom_properties={"placement_keys": text}))
    assert [record.getMessage() for record in caplog.records] == [
        "VM v: custom property placement_keys: key _ is ignored: it has no name",
        "VM v: custom property placement_keys: key Huge is ignored: its value is no number",
    ]
    assert bench.frozen == {"v": (("Group1", 1.0), ("A", 1.0))}


def test_what_cannot_be_read_is_looked_at_later(bench: Bench) -> None:
    readings = []

    def away() -> Snapshot:
        readings.append(bench.now)
        raise UserError("the engine is away")

    for bench.now in (0.0, 0.5, 1.0, 2.0, 3.0):
        bench.keeper.observe_latest(away)
    assert readings == [0.0, 1.0, 3.0]
    bench.now = 61.0
    bench.keeper.observe_latest(lambda: snapshot(host("h1"), vm("h1")))
    assert bench.frozen == {"v": SET}
    assert bench.store.records().frozen_keys == (FrozenKeys("v", SET),)


def test_what_keys_refer_to_is_waited_for_but_not_for_ever(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.detailed = False
    bench.sees(vm("h1"))
    bench.now = 599.0
    bench.sees(vm("h1"))
    assert bench.frozen == {}
    bench.detailed = True
    bench.sees(vm("h2"))
    assert bench.frozen == {"v": SET}
    assert bench.readings == 1  # where it started is asked: it may have moved meanwhile
    bench.detailed = False
    other = builders.vm("other", "h1")
    for bench.now in (600.0, 1199.0, 1200.0):
        assert "other" not in bench.frozen
        bench.sees(vm("h2"), other)
    assert bench.frozen.keys() == {"v", "other"}
    assert caplog.text.count("disks, NICs or owners are still unknown") == 1
