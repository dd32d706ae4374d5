"""A run of tests ends, whatever they do, and says of which it was; a quick test that is slow fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

pytestmark = pytest.mark.system

_CONFTEST = """
from tests.kit import runs

def pytest_configure(config):
    for marker in ("system", "nightly", "timing"):
        config.addinivalue_line("markers", marker)
    runs.install(config)
"""
_SHARED = """
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_it(number):
    Path(os.environ["PYTEST_XDIST_WORKER"]).touch()
"""
_KILLED = """
import os, signal, time
import pytest

@pytest.mark.parametrize("number", range(40))
def test_it(number):
    time.sleep(0.01)
    if number == 17:
        os.kill(os.getpid(), signal.SIGKILL)
"""
_HANGS = """
import threading
import pytest

@pytest.mark.parametrize("number", range(40))
def test_it(number):
    if number == 17:
        threading.Event().wait()
"""
_FINE = """
import time
import pytest

@pytest.mark.parametrize("number", range(40))
def test_fine(number):
    time.sleep(0.01)
"""
_SLOW = """
import subprocess, sys, threading, time
import pytest

def compute(seconds):  # on an ordinary machine
    total = 0
    for number in range(int(seconds * 25_000_000)):
        total += number

@pytest.fixture(scope="module")
def shared():
    time.sleep(0.7)

def test_sleeps():
    time.sleep(0.6)

def test_waits():
    threading.Event().wait(0.6)

def test_computes():
    compute(2.5)

def test_computes_elsewhere():
    subprocess.run([sys.executable, "-c", "for number in range(40_000_000): number + number"])

def test_computes_in_a_thread():
    thread = threading.Thread(target=compute, args=(2.5,))
    thread.start()
    thread.join()

def test_fine_computes():
    compute(0.25)

def test_fine_sleeps():
    time.sleep(0.3)

def test_fine_is_first_to_use_what_is_shared(shared):
    pass

def test_fine_loads_something_once():
    if "once" not in sys.modules:
        sys.modules["once"] = sys
        time.sleep(0.6)

@pytest.mark.system
def test_fine_of_another_suite():
    time.sleep(0.6)
"""
_LEAKS = """
import subprocess, threading

KEPT = []

def test_a_descriptor():
    KEPT.append(open(__file__))

def test_a_thread():
    threading.Thread(target=threading.Event().wait, daemon=True).start()

def test_a_process():
    KEPT.append(subprocess.Popen(["sleep", "60"]))

def test_nothing():
    with open(__file__) as file:
        file.read()
    thread = threading.Thread(target=print)
    thread.start()
    thread.join()
"""
_TIMED = """
import time
import pytest

def note(what):
    with open("times", "a") as file:
        file.write(f"{what} {time.monotonic()}\\n")

@pytest.mark.timing
@pytest.mark.parametrize("number", range(4))
def test_timed(number):
    note("timed")
    time.sleep(0.05)
    note("over")

@pytest.mark.parametrize("number", range(40))
def test_other(number):
    note("other")
    time.sleep(0.02)
    note("over")
"""


def run(folder: Path, *words: str, **files: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(_CONFTEST)
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    options = ("--max-worker-restart=0", "--dist", "loadgroup", "--timeout-method", "thread")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
    )


def test_a_group_is_run_by_one_worker(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "2", shared=_SHARED)
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    assert len([*tmp_path.glob("gw*")]) == 1


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("deed", [_KILLED, _HANGS], ids=["killed", "hangs"])
@pytest.mark.parametrize("units", ["loadfile", "loadgroup"])
def test_a_worker_that_is_lost_ends_the_run_with_the_name_of_its_test(
    deed: str, workers: int, units: str, tmp_path: Path
) -> None:
    options = ("-n", str(workers), "--dist", units, "--timeout", "3")
    done = run(tmp_path, *options, first=deed, second=deed, third=_FINE)
    assert done.returncode == 1, done.stdout + done.stderr
    *_, last = done.stdout.split("FAILED ")
    assert last.startswith(("test_first.py::test_it[17]", "test_second.py::test_it[17]"))
    assert "crashed while running" in last


def test_a_quick_test_that_is_slow_fails(tmp_path: Path) -> None:
    done = run(tmp_path, slow=_SLOW)
    failed = set(re.findall(r"^FAILED test_slow.py::(\w+)", done.stdout, re.MULTILINE))
    slow = {"sleeps", "waits", "computes", "computes_elsewhere", "computes_in_a_thread"}
    assert failed == {f"test_{name}" for name in slow}, done.stdout
    assert "5 passed" in done.stdout
    assert "more than the 0.5 s of a quick test" in done.stdout


def test_what_a_real_clock_decides_runs_alone_and_late(tmp_path: Path) -> None:
    """A worker may have one other test left that it was given before."""
    done = run(tmp_path, "-n", "3", timed=_TIMED)
    assert "44 passed" in done.stdout, done.stdout + done.stderr
    noted = [line.split()[0] for line in (tmp_path / "times").read_text().splitlines()]
    timed = [number for number, what in enumerate(noted) if what == "timed"]
    assert [noted[number + 1] for number in timed] == ["over"] * 4
    assert all(
        noted[:number].count("other") == noted[:number].count("over") - timed.index(number)
        for number in timed
    )
    assert noted[: timed[0]].count("other") >= 37


def test_a_run_ends_with_the_last_lines_of_what_failed(tmp_path: Path) -> None:
    done = run(tmp_path, "-n", "2", bad="def test_it():\n    assert 'this' == 'that'\n", fine=_FINE)
    (*_, end) = done.stdout.split("FAILED test_bad.py::test_it")
    assert "AssertionError" in end
    assert len(end.splitlines()) < 15


def test_a_quick_test_that_leaves_something_behind_fails(tmp_path: Path) -> None:
    done = run(tmp_path, leaks=_LEAKS)
    failed = set(re.findall(r"^ERROR test_leaks.py::(\w+)", done.stdout, re.MULTILINE))
    assert failed == {"test_a_descriptor", "test_a_thread", "test_a_process"}, done.stdout
