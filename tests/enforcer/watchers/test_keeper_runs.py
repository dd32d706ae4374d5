"""What begins and ends a run, whatever the keeper missed of it; and when all that a VM had is forgotten."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from ovirt_enforcer.watchers.key_recorder import MISSING_SECONDS, READINGS
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.model.infrastructure import VM_STATUSES
from ovirt_placement.store.keys import KeyChange, Run
from ovirt_service.errors import UserError
from tests import builders
from tests.builders import key, snapshot
from tests.enforcer.watchers.keeper_bench import KEYS, SAN1, SAN2, SET, Bench, opened_bench, vm
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
    return EngineEvent(
        id=number, code=32, severity="normal", time=at, description="", correlation_id=None, vm="v",
        host=host, cluster="c",
    )  # fmt: skip


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


@pytest.mark.parametrize("trouble", ["store", "details", "engine", "lease"])
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
        else:
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
