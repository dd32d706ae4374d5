"""A daemon reports to systemd that it gets on, hangs when it does not, and ends at a signal."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.daemon import BackOff, Notifier, Progress
from tests.clock import Clock
from tests.service.listening import systemd

PLAIN = """
import sys
from ovirt_service.daemon import Notifier
hangs = []
notifier = Notifier()
notifier.keep_alive_concurrently(lambda: bool(hangs))
notifier.ready()
notifier.ready()
for line in sys.stdin:
    hangs[:] = [line] if line == "hang\\n" else []
    print("done", flush=True)
notifier.stopping()
"""

ASYNC = """
import asyncio, sys
from ovirt_service.daemon import Notifier

async def main():
    hangs = []
    notifier = Notifier()
    task = asyncio.create_task(notifier.keep_alive(lambda: bool(hangs)))
    notifier.ready()
    notifier.ready()
    while line := await asyncio.to_thread(sys.stdin.readline):
        hangs[:] = [line] if line == "hang\\n" else []
        print("done", flush=True)
    notifier.stopping()

asyncio.run(main())
"""


@contextmanager
def running(program: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env={**os.environ, **environment}, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def report(process: subprocess.Popen[str], word: str) -> None:
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


@pytest.mark.system
@pytest.mark.parametrize("program", [PLAIN, ASYNC])
def test_a_loop_that_hangs_falls_silent_until_it_gets_on(program: str, tmp_path: Path) -> None:
    with systemd(tmp_path) as listening, running(program, listening.environment(0.15)) as process:
        assert listening.hear_until("WATCHDOG=1", 3).count("READY=1") == 1
        report(process, "hang")
        assert listening.count(1.0) <= 1, "one may have been on its way"
        report(process, "go on")
        listening.hear_until("WATCHDOG=1", 3)
        process.stdin.close()
        assert listening.hear_until("STOPPING=1").count("READY=1") == 0
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("program", "watchdog"),
    [
        pytest.param(PLAIN, {}, marks=pytest.mark.system),
        pytest.param(ASYNC, {}, marks=pytest.mark.system),
        pytest.param(PLAIN, {"WATCHDOG_USEC": "150000", "WATCHDOG_PID": "1"}, id="another one"),
    ],
)
def test_a_process_that_is_not_watched_gives_no_signs_of_life(
    program: str, watchdog: dict[str, str], tmp_path: Path
) -> None:
    with systemd(tmp_path) as listening, running(program, listening.environment() | watchdog) as process:
        assert listening.hear() == "READY=1"
        process.stdin.close()
        assert listening.hear() == "STOPPING=1"


def test_without_systemd_nothing_is_notified() -> None:
    with running(PLAIN, dict.fromkeys(("NOTIFY_SOCKET", "WATCHDOG_USEC"), "")) as process:
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_loop_that_marks_its_progress_does_not_hang() -> None:
    clock = Clock(100.0)
    progress = Progress(5.0, clock)
    assert not progress.hangs
    for _ in range(3):
        clock.now += 5.0
        assert not progress.hangs
        progress.mark()
    clock.now += 5.1
    assert progress.hangs
    progress.mark()
    assert not progress.hangs


#: It does not end before all signals were sent: Python ends by the default handlers.
DAEMON = """
import sys
from ovirt_service.daemon import Stop
stop = Stop()
print("ready", flush=True)
while not stop.sleep(0):
    pass
sys.stdin.read()
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_between_two_sleeps_is_not_lost(signals: int) -> None:
    for _ in range(10):
        with running(DAEMON, {}) as daemon:
            daemon.stdout.readline()
            for _ in range(signals):
                daemon.terminate()
            daemon.stdin.close()
            assert daemon.wait(10) == 0


def test_a_sign_of_life_waits_for_no_systemd_that_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with systemd(tmp_path) as listening:
        for name, value in listening.environment(watchdog_seconds=1e-6).items():
            monkeypatch.setenv(name, value)
        more = iter([False] * 2000)  # than any socket keeps
        with pytest.raises(RuntimeError, match="StopIteration"):
            asyncio.run(Notifier().keep_alive(lambda: next(more)))
        assert listening.hear() == "WATCHDOG=1"


@given(st.floats(0.01, 10), st.floats(0.01, 1000), st.integers(1, 30))
def test_each_pause_is_twice_the_last_up_to_the_longest(first: float, longest: float, failures: int) -> None:
    back_off = BackOff(first, longest)
    expected = first
    for _ in range(failures - 1):
        expected *= 2
    assert back_off.pause_after(failures) == min(expected, longest)


@pytest.mark.parametrize(("failures", "pause"), [(0, 0.0), (1_000_000, 10.0)])
def test_without_a_failure_there_is_no_pause_and_what_failed_for_days_is_still_tried(
    failures: int, pause: float
) -> None:
    assert BackOff(1.0, 10.0).pause_after(failures) == pause
