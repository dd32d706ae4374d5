"""The journal of all processes of a machine: whatever one does or leaves undone, the others read on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.inventory.expected import journal
from ovirt_placement.inventory.expected.journal import Journal
from ovirt_placement.inventory.expected.ranks import packed
from ovirt_placement.inventory.expected.traces import Outcomes, Trace, TraceOutcome, Traces
from tests.examples import examples

PROCESSES, RECORDS = 4, 300
#: A process of its own, not a fork of one that runs threads.
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "expected"


def begun(folder: Path) -> Journal:
    made = Journal(folder)
    made.begin()
    return made


def reported(reader: Journal) -> list[bytes]:
    """All that a journal holds, for who reads it for the first time."""
    return reader.news()[1]


def left(traces: Traces, vm: str, at: float = 100.0, hosts: tuple[str, ...] = ("h1", "h2")) -> None:
    traces.leave(vm, Trace("SoftAffinityWeight", at, None, hosts, packed(range(len(hosts))), 1))


def test_a_reader_reads_on_from_where_it_was(folder: Path) -> None:
    writer, reader = begun(folder), Journal(folder)
    writer.append(b"one", b"two")
    assert reader.news() == (True, [b"one", b"two"])
    assert reader.news() == (False, [])
    writer.append(b"three")
    assert reader.news() == (False, [b"three"])


def test_who_reads_a_journal_that_is_begun_again_forgets_the_old_one(folder: Path) -> None:
    writer, reader = begun(folder), Journal(folder)
    writer.append(b"one")
    reader.news()
    with writer.locked(alone=True):
        writer.begin_again([b"two"])
    assert not reader.is_current()
    assert reader.news() == (True, [b"two"])
    with writer.locked(alone=True):
        writer.remove()
    assert reader.news() == (True, [])
    assert reader.news() == (False, [])


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(50)
)
@given(st.binary(min_size=1, max_size=60), st.data())
def test_what_a_killed_writer_left_of_a_record_hides_no_later_one(
    folder: Path, record: bytes, data: st.DataObject
) -> None:
    writer = begun(folder)
    with writer.locked(alone=True):
        writer.begin_again([b"before", record])
    file = folder / "journal"
    whole = file.stat().st_size
    with writer.locked(alone=True):
        writer.begin_again([b"before"])
    before = file.stat().st_size
    with writer.locked(alone=True):
        writer.begin_again([b"before", record])
    os.truncate(file, data.draw(st.integers(before, whole - 1)))
    reader = Journal(folder)
    assert reported(reader) == [b"before"]
    writer.append(b"after")
    assert reader.news() == (False, [b"after"])
    assert reported(Journal(folder)) == [b"before", b"after"]


def test_all_members_of_the_group_may_write_whatever_the_mask(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        begun(folder)
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "journal").stat().st_mode) == 0o660


def test_a_link_in_its_place_is_not_followed(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"")
    folder.mkdir()
    (folder / "journal").symlink_to(elsewhere)
    left(Traces(folder), "a")
    assert elsewhere.read_bytes() == b""


def leave_many(folder: Path, number: int) -> None:
    journal._PATIENCE_SECONDS = 60.0  # here every record counts, however busy the machine is
    traces = Traces(folder)
    for at in range(RECORDS):
        left(traces, f"{number}-{at}", hosts=tuple(f"h{host}" for host in range(1 + at % 7)))
        if at % 3 == 0:
            traces.read()
        if at % 2:
            traces.drop(f"{number}-{at}", 100.0, TraceOutcome.RIGHT)


@pytest.mark.system
def test_what_several_processes_leave_and_end_at_once_is_all_there(folder: Path) -> None:
    watching = Traces(folder)
    processes = [SPAWN.Process(target=leave_many, args=(folder, number)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        watching.read()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    watching.read()
    wanted = {f"{number}-{at}" for number in range(PROCESSES) for at in range(0, RECORDS, 2)}
    fresh = Traces(folder)
    fresh.read()
    assert set(watching.found) == set(fresh.found) == wanted
    assert watching.found == fresh.found
    assert fresh.outcomes() == Outcomes(PROCESSES * RECORDS // 2, 0, 0)


def leave_for_ever(folder: Path, ready: Connection) -> None:
    traces = Traces(folder)
    ready.send(None)
    for number in range(1_000_000):
        # Always the same VMs: what is over makes the journal long, and it is begun again again and again.
        left(
            traces, f"vm{number % 3}", at=100.0 + 2 * number, hosts=tuple(map(str, range(number % 50, 1000)))
        )
        traces.read()


@pytest.mark.system
def test_a_process_that_is_killed_at_any_moment_harms_no_other(folder: Path) -> None:
    mine = Traces(folder)
    left(mine, "mine")
    for round_ in range(6):
        receiver, sender = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=leave_for_ever, args=(folder, sender))
        process.start()
        receiver.recv()
        until = time.monotonic() + 0.05 + 0.01 * round_
        while time.monotonic() < until:
            mine.read()
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        left(mine, f"after{round_}")
        fresh = Traces(folder)
        for traces in (mine, fresh):
            traces.read()
            assert {"mine", *(f"after{before}" for before in range(round_ + 1))} <= traces.found.keys()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    with Journal(folder).locked(alone=True):
        yield


def test_one_that_is_stopped_with_the_lock_holds_up_no_decision(folder: Path) -> None:
    traces = Traces(folder)
    left(traces, "a")
    with held(folder):
        left(traces, "b")
        traces.read()
        assert traces.found.keys() == {"a"}
    left(traces, "b")
    traces.read()
    assert traces.found.keys() == {"a", "b"}


def test_the_first_who_finds_out_takes_note_of_the_outcome(folder: Path) -> None:
    one, other = Traces(folder), Traces(folder)
    left(one, "a")
    left(one, "b")
    for traces in (one, other):
        traces.read()
    one.drop("a", 100.0, TraceOutcome.RIGHT)
    other.drop("a", 100.0, TraceOutcome.RIGHT)
    assert one.outcomes() == Outcomes(1, 0, 0)
    for traces in (one, other):
        traces.read()
        assert traces.found.keys() == {"b"}


def test_what_was_found_out_of_an_earlier_decision_does_not_end_a_later_one(folder: Path) -> None:
    one, other = Traces(folder), Traces(folder)
    left(one, "a", at=100.0)
    one.read()
    left(other, "a", at=105.0)
    one.drop("a", 100.0, TraceOutcome.WRONG)
    assert [trace.at for trace in one.found["a"]] == [105.0]
    assert one.outcomes() == Outcomes(0, 0, 0)


def test_an_untouched_journal_says_that_nothing_has_changed(folder: Path) -> None:
    one, other = Traces(folder), Traces(folder)
    left(one, "a")
    assert other.read() == {"a"}
    assert other.read() == set()
    known = other.found["a"]
    for at in range(2000):
        left(one, "b", at=100.0 + 2 * at)
    one.read()
    left(one, "c")
    assert {"b", "c"} <= other.read() | {"b"}
    assert other.found["a"] is known, "also when the journal was begun again"
