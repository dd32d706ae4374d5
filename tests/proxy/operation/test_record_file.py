"""The file of decisions: bounded, never in the way, and whole lines whatever happens to disk and clock."""

import json
import logging
import os
from pathlib import Path

import pytest

from ovirt_scheduler_proxy import logs
from ovirt_scheduler_proxy.logs import RecordFile
from tests.clock import Clock

DAY = 24 * 3600.0


#: In the afternoon.
BEGIN = 1_790_000_000.0
NAME = "decisions.jsonl"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of day, which somebody may set."""
    clock = Clock(BEGIN)
    monkeypatch.setattr(logs.time, "time", clock)
    return clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def record(path: Path, size: int = 1 << 20, files: int = 5, days: float = 8) -> RecordFile:
    return RecordFile(path, size, files, days)


def line(number: int = 0, at: float = BEGIN) -> str:
    return json.dumps({"time": at, "number": number}, separators=(",", ":"))


#: A file has room for three lines.
THREE = 3 * (len(line()) + 1) + 1


def written(record: RecordFile, path: Path, clock: Clock, number: int = 0) -> None:
    """Write a line, and give its file the age that the clock says."""
    record.write(line(number, clock.now))
    os.utime(path, (clock.now, clock.now))


def numbers(path: Path) -> list[int]:
    """Those of all files, the oldest first."""
    files = sorted(path.parent.glob(f"{NAME}*"), key=_age, reverse=True)
    return [json.loads(text)["number"] for file in files for text in file.read_text().splitlines()]


def _age(file: Path) -> int:
    number = file.suffix[1:]
    return int(number) if number.isdecimal() else 0


def test_a_full_file_makes_way_and_the_oldest_goes(path: Path, clock: Clock) -> None:
    records = record(path, THREE, files=2)
    for number in range(10):
        written(records, path, clock, number)
    assert numbers(path) == [3, 4, 5, 6, 7, 8, 9]
    assert {file.name for file in path.parent.iterdir()} == {NAME, f"{NAME}.1", f"{NAME}.2"}


def test_lines_that_come_at_once_carry_no_file_beyond_its_size(path: Path, clock: Clock) -> None:
    record(path, THREE, files=9).write("\n".join(map(line, range(8))))
    assert numbers(path) == list(range(8))
    assert all(file.stat().st_size <= THREE for file in path.parent.iterdir())


def test_a_file_of_another_day_makes_way_and_what_is_older_than_kept_goes(path: Path, clock: Clock) -> None:
    records = record(path, days=3, files=100)
    for number in range(12):
        written(records, path, clock, number)
        clock.now += DAY / 2
    # Two lines a day; the newest file but one was written to half a day ago.
    assert numbers(path) == list(range(3, 12))


def test_another_process_goes_on_where_one_ended_and_knows_how_old_the_file_is(
    path: Path, clock: Clock
) -> None:
    for number, seconds in ((1, 0.0), (2, DAY * 0.2), (3, DAY * 0.3)):
        assert not path.with_name("decisions.jsonl.1").exists()
        clock.now += seconds
        written(record(path), path, clock, number)
    assert numbers(path) == [1, 2, 3]
    assert path.with_name("decisions.jsonl.1").exists()


@pytest.mark.parametrize("jump", [400 * DAY, -400 * DAY])
def test_a_clock_that_is_set_deletes_nothing(path: Path, clock: Clock, jump: float) -> None:
    records = record(path, days=3, files=100)
    for number in range(4):
        written(records, path, clock, number)
        clock.now += DAY / 2
    clock.now += jump
    for number in range(4, 8):
        written(records, path, clock, number)
        clock.now += 60
    clock.now -= jump
    for number in range(8, 10):
        written(records, path, clock, number)
        clock.now += 60
    assert sorted(numbers(path)) == list(range(10))


def test_half_a_line_of_a_process_that_died_spoils_no_other(path: Path, clock: Clock) -> None:
    path.write_text('{"time":1790000000.0,"num')
    os.utime(path, (clock.now, clock.now))
    record(path).write(line(1))
    assert path.read_text().splitlines() == ['{"time":1790000000.0,"num', line(1)]


def test_a_full_disk_is_reported_once_and_so_is_its_end(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path.symlink_to("/dev/full")
    records = record(path)
    for number in range(3):
        records.write(line(number))
    path.unlink()
    records.write(line(3))
    assert [message for _, _, message in caplog.record_tuples] == [
        f"decisions are not recorded: {path}: No space left on device",
        f"decisions are recorded again in {path}: 3 were lost",
    ]
    assert numbers(path) == [3]


def test_a_folder_that_is_away_is_reported_and_used_once_it_is_there(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    away = path.parent / "away" / path.name
    records = record(away)
    assert "No such file or directory" in caplog.text
    away.parent.mkdir()
    records.write(line(1))
    assert numbers(away) == [1]


def test_a_file_that_was_moved_away_is_made_again(path: Path, clock: Clock) -> None:
    records = record(path)
    records.write(line(1))
    path.rename(path.with_name("elsewhere"))
    records.write(line(2))
    assert numbers(path) == [2]


def test_another_process_at_the_same_file_goes_on_in_the_new_one(path: Path, clock: Clock) -> None:
    one, other = (record(path, THREE, files=9) for _ in range(2))
    for number in range(8):
        (one if number % 3 else other).write(line(number))
    assert numbers(path) == list(range(8))
    assert all(file.stat().st_size <= THREE for file in path.parent.iterdir())


def test_what_is_no_file_of_its_own_is_never_deleted(path: Path, clock: Clock) -> None:
    packed = path.with_name("decisions.jsonl.1.gz")
    packed.write_text("kept by hand")
    os.utime(packed, (clock.now - 30 * DAY,) * 2)
    records = record(path, days=3)
    for number in range(3):
        written(records, path, clock, number)
        clock.now += DAY
    assert packed.exists()


@pytest.mark.parametrize("umask", [0o027, 0o022], ids=["of the service", "by hand"])
def test_its_group_may_read_it_and_nobody_else(path: Path, clock: Clock, umask: int) -> None:
    before = os.umask(umask)
    try:
        record(path).write(line())
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
