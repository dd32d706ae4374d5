"""The log holds what happened and nothing that a caller made up, and waits for no reader."""

import json
import logging
import os
import signal
import subprocess
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ovirt_scheduler_proxy import logs
from ovirt_scheduler_proxy.logs import RecordFile
from tests.clock import Clock
from tests.proxy.running import COMMAND, RunningProxy, eventually, serving, units, write_plugins

PLUGINS = "class Unknown(Exception):\n    awaits = False\n" + units(
    Loud="print('x' * 30_000)\nreturn hosts",
    Forging=r"raise RuntimeError('no\n2026-01-01 00:00:00,000 ERROR forged\r\x1b[31m')",
    Knows="raise Unknown(f'there is no {vm}')",
    Errs="raise RuntimeError(vm)",
)

IMPORTED = r"""
import os, sys
os.write(2, b"\xff\x1b[31m\n2026-01-01 00:00:00,000 ERROR forged by an import\n" + b"z" * 100_000)
"""

FORGED = "vm\n2026-01-01 00:00:00,000 ERROR forged\x9b31m\u2028\u200f\U000e0041"


def test_no_caller_and_no_unit_writes_a_line_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path, config="[log]\nlevel = 'debug'\n", units=PLUGINS, imported=IMPORTED) as proxy:
        with proxy.client() as client:
            client.runFilters(["Forging", FORGED], [FORGED], FORGED, {})
        eventually(lambda: "Forging raised" in proxy.log)
    assert "forged by an import" in proxy.log
    assert max(map(len, proxy.log.splitlines())) < 5000
    assert not [line for line in proxy.log.splitlines() if line.startswith("2026-01-01 00:00:00,000 ERROR")]
    assert proxy.log.replace("\n", "").isprintable()


def test_who_asks_for_failures_again_and_again_fills_no_log(tmp_path: Path) -> None:
    with serving(tmp_path, units=PLUGINS) as proxy, proxy.client() as client:
        for number in range(40):
            client.runFilters(["Knows", "Errs", f"made-up-{number}"], ["h1"], f"vm-{number}", {})
            with pytest.raises(xmlrpc.client.Fault):
                client.no_such_method()
        client.runFilters(["Errs"], ["h1"], "last", {})
        eventually(lambda: "vm=last" in proxy.log)
        lines = proxy.log.splitlines()
    for words in ("Knows raised", "Errs raised", "made-up-", "no_such_method", "Traceback"):
        assert len([line for line in lines if words in line and " vm=" not in line]) == 10, words
    assert not [line for line in lines if "Knows: " in line], "it is no mistake of the unit"
    assert len([line for line in lines if "FAILED" in line]) == 41, "each is counted, with its cause"


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[tuple[RunningProxy, int]]:
    """A proxy whose log nobody reads until a test does."""
    folder = write_plugins(tmp_path / "plugins", units=PLUGINS)
    reader, writer = os.pipe()
    command = [*COMMAND, "run", "--plugins", str(folder), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, text=True) as process:
        os.close(writer)
        yield RunningProxy(process, Path(os.devnull)), reader


def call(proxy: RunningProxy, times: int) -> None:
    with proxy.client() as client:
        for _ in range(times):
            client.runFilters(["Loud"], ["h1"], "vm", {})


@pytest.mark.system
def test_a_log_that_nobody_reads_costs_no_memory_and_no_time(unread: tuple[RunningProxy, int]) -> None:
    proxy, reader = unread
    call(proxy, 200)
    process = psutil.Process(proxy.process.pid)
    before = process.memory_info().rss
    call(proxy, 400)
    assert process.memory_info().rss - before < 8 << 20
    proxy.process.send_signal(signal.SIGTERM)
    assert proxy.process.wait() == 0  # though nobody reads, before the test ends
    os.close(reader)


@pytest.mark.system
def test_what_was_lost_is_counted(unread: tuple[RunningProxy, int]) -> None:
    proxy, reader = unread
    call(proxy, 400)
    with open(reader) as log:
        reported = next(line for line in log if "messages were lost here" in line)
        proxy.process.send_signal(signal.SIGTERM)
        log.read()
    assert int(reported.split()[3]) > 100


# -- The file of decisions: bounded, never in the way, and whole lines whatever happens to disk and clock.
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
