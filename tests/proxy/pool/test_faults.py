"""Each way a unit can misbehave costs its own answer only, under load, in time, and leaves nothing behind."""

import contextlib
import http.client
import os
import signal
import threading
import time
import xmlrpc.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.proxy.pool.watching import CONFIG, HEALTHY, RELOADING
from tests.proxy.running import RunningProxy, eventually, serving, units, write_plugins

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

DEADLINE = 1.0
CLIENTS = 8
HOSTS = ["h1", "h2", "h3"]

ORPHAN = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
return hosts
"""
FORK_AND_DIE = """
if os.fork() == 0:
    time.sleep(600)
os._exit(5)
"""
SUBPROCESS = """
subprocess.Popen(["sleep", "600"], start_new_session=True)
raise RuntimeError("left a child")
"""
CLOSE_STDOUT = """
os.close(1)
sys.stdout.close()
return hosts[:1]
"""
SCRIBBLE = """
for descriptor in range(3, 30):
    with contextlib.suppress(OSError):
        os.write(descriptor, b"\\xff" * 64)
return hosts
"""
BAD_REPR = """
class Odd(list):
    def __iter__(self):
        raise KeyError("odd")
    def __repr__(self):
        raise KeyError("odder")
return Odd(hosts)
"""

#: What each unit does, and what it is reported for; None where its answer is well nevertheless.
FAULTS = {
    "Raise": ("raise RuntimeError('on purpose')", "raised RuntimeError: on purpose"),
    "SysExit": ("sys.exit(3)", "called sys.exit(3)"),
    "SeekAndExit": ("os.lseek(2, 1 << 50, os.SEEK_SET)\nos._exit(4)", "exit status 4"),
    "OsExit": ("os._exit(4)", "exit status 4"),
    "Segfault": ("ctypes.string_at(0)", "SIGSEGV"),
    "LoopInPython": ("while True: pass", "did not answer in time (1 s)"),
    "LoopInC": ("sum(range(10**14))", "did not answer in time (1 s)"),
    "Allocate": ("return len(bytearray(4 << 30)) and hosts", "more memory than its limit"),
    "Flood": ("while True: print('x' * 100000)", "printed more than 4 MiB"),
    "FloodInC": ("while True: os.write(2, b'x' * 100000)", "Operation not permitted"),
    "Orphan": (ORPHAN, None),
    "ForkAndReturn": ("os.fork()\nreturn hosts", None),
    "ForkAndDie": (FORK_AND_DIE, "exit status 5"),
    "Subprocess": (SUBPROCESS, "left a child"),
    "CloseStdout": (CLOSE_STDOUT, None),
    "CloseEverything": ("os.closerange(0, 1000)\nreturn hosts", "ended its worker process with exit status"),
    "Scribble": (SCRIBBLE, "confused its worker process"),
    "KillItself": ("os.kill(os.getpid(), 9)", "it was killed"),
    "BadRepr": (BAD_REPR, "its answer cannot be read"),
    "Recursion": ("return self.do_filter(hosts, vm, args)", "raised RecursionError"),
}
PLUGINS = "import contextlib, ctypes, os, subprocess, sys, time\n" + units(
    **{name: deed for name, (deed, _) in FAULTS.items()}
)

LIMITED = f"""
[calls]
deadline_seconds = {DEADLINE}
[workers]
memory_mib = 256
most = 12
"""


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[RunningProxy]:
    with serving(tmp_path, config=LIMITED, healthy=HEALTHY, faults=PLUGINS) as started:
        yield started


def _ask(proxy: RunningProxy, unit: str) -> float:
    """Ask the unit together with a healthy one; check the answer and return the time it took."""
    started = time.monotonic()
    answer = proxy.filters([unit, "Healthy"], HOSTS)
    taken = time.monotonic() - started
    narrowed = unit == "CloseStdout" and answer["result_code"] == 0
    assert answer["result"] == ([] if narrowed else HOSTS[1:])
    return taken


def _children_of_workers(proxy: RunningProxy) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for worker in proxy.workers():
        with contextlib.suppress(psutil.NoSuchProcess):
            found.extend(worker.children())
    return found


@pytest.mark.parametrize("unit", FAULTS)
def test_a_fault_costs_only_its_own_answer(proxy: RunningProxy, unit: str) -> None:
    first = proxy.filters([unit], HOSTS)
    _, expected = FAULTS[unit]
    if expected is None:
        assert (first["result_code"], first["result"]) == (0, HOSTS[:1] if unit == "CloseStdout" else HOSTS)
    else:
        assert expected in first["plugin_errors"][unit][0]
        assert first["result"] == HOSTS
    with ThreadPoolExecutor(CLIENTS) as clients:
        times = list(clients.map(lambda _: _ask(proxy, unit), range(CLIENTS)))
        healthy = list(clients.map(lambda _: proxy.filters(["Healthy"], HOSTS)["result"], range(CLIENTS)))
    assert max(times) < DEADLINE + 1
    assert healthy == [HOSTS[1:]] * CLIENTS
    eventually(lambda: not _children_of_workers(proxy))


def test_the_breaker_answers_at_once_for_a_unit_that_keeps_overrunning(proxy: RunningProxy) -> None:
    for _ in range(3):
        proxy.filters(["LoopInC"], HOSTS)
    started = time.monotonic()
    answer = proxy.filters(["LoopInC", "Healthy"], HOSTS)
    assert time.monotonic() - started < DEADLINE / 2
    assert answer["result"] == HOSTS[1:]
    assert "cut off" in answer["plugin_errors"]["LoopInC"][0]


def test_who_tries_a_unit_by_hand_does_not_cut_it_off(proxy: RunningProxy) -> None:
    by_hand = xmlrpc.client.ServerProxy(proxy.url, headers=[("X-Trouble-Shooting", "1")])
    with by_hand as client:
        for _ in range(3):
            assert "did not answer in time" in str(client.runFilters(["LoopInC"], HOSTS, "vm", {}))
    assert "did not answer in time" in str(proxy.filters(["LoopInC"], HOSTS))


def test_a_hanging_unit_leaves_workers_to_the_others(proxy: RunningProxy) -> None:
    with ThreadPoolExecutor(CLIENTS) as clients:
        hanging = [clients.submit(proxy.filters, ["LoopInPython"], HOSTS) for _ in range(CLIENTS - 1)]
        times = []
        while not all(call.done() for call in hanging):
            started = time.monotonic()
            assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]
            times.append(time.monotonic() - started)
        assert all(call.result()["result"] == HOSTS for call in hanging)
    assert max(times) < DEADLINE


# -- A proxy that ends leaves no process behind, whatever it was doing.
LINGERING = units(Lingering="import subprocess; subprocess.run(['sleep', '600'])")
CURIOUS = units(Curious="import os; return [name for name in hosts if name in os.environ]")
LOADING = "[workers]\nload_seconds = 600\n[reload]\nwatch_seconds = 0.05\n"


@pytest.fixture
def mark() -> dict[str, str]:
    """By it a proxy's processes are known."""
    return {"MARK_OF_THIS_TEST": os.urandom(8).hex()}


def test_ending_while_plugins_are_loaded_leaves_nothing_behind(tmp_path: Path, mark: dict[str, str]) -> None:
    with serving(tmp_path, config=RELOADING, environment=mark, healthy=HEALTHY) as proxy:
        before = len(proxy.descendants())
        write_plugins(tmp_path / "plugins", hanging="while True: pass")
        eventually(lambda: len(proxy.descendants()) > before)
        proxy.stop()
        assert _marked(mark) == []


def test_ending_while_a_parent_is_replaced_leaves_nothing_behind(
    tmp_path: Path, mark: dict[str, str]
) -> None:
    with serving(tmp_path, config=CONFIG, environment=mark, healthy=HEALTHY) as proxy:
        (zygote,) = psutil.Process(proxy.process.pid).children()
        zygote.send_signal(signal.SIGKILL)
        eventually(lambda: "has ended; restarting it" in proxy.log)
        proxy.stop()
        assert _marked(mark) == []


@pytest.mark.parametrize(
    "module",
    [
        "while True: pass",
        "import time; time.sleep(600)",
        "import subprocess; subprocess.run(['sleep', '600'])",
    ],
    ids=["busy", "asleep", "waiting"],
)
def test_a_proxy_that_is_killed_while_plugins_are_loaded_leaves_nothing_behind(
    tmp_path: Path, mark: dict[str, str], module: str
) -> None:
    with serving(tmp_path, config=LOADING, environment=mark, healthy=HEALTHY) as proxy:
        before = len(proxy.descendants())
        write_plugins(tmp_path / "plugins", hanging=module)
        eventually(lambda: len(proxy.descendants()) > before)
        proxy.kill()
        eventually(lambda: _marked(mark) == [])


def test_a_proxy_that_is_killed_leaves_nothing_behind_of_what_units_do(
    tmp_path: Path, mark: dict[str, str]
) -> None:
    with serving(tmp_path, environment=mark, units=LINGERING) as proxy:
        before = len(proxy.descendants())
        asking = threading.Thread(target=_in_vain, args=(proxy,))
        asking.start()
        eventually(lambda: len(proxy.descendants()) > before)
        proxy.kill()
        eventually(lambda: _marked(mark) == [])
        asking.join()


def test_plugins_do_not_see_the_password(tmp_path: Path) -> None:
    given = {"OVIRT_PASSWORD": "secret", "OVIRT_TOKEN": "secret", "OTHER": "known"}
    with serving(tmp_path, environment=given, units=CURIOUS) as proxy:
        assert proxy.filters(["Curious"], list(given))["result"] == ["OTHER"]


def _in_vain(proxy: RunningProxy) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        proxy.filters(["Lingering"], ["h1"])


def _marked(mark: dict[str, str]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if mark.items() <= process.environ().items():
                found.append(process)
        except psutil.Error:
            continue
    return found
