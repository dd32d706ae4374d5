"""Workers that grow too large, do not start, or lose their parent: replaced, and only the guilty pay."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_scheduler_proxy.pool.back_off import FIRST_SECONDS, LONGEST_SECONDS, BackOff

from ..running import RunningProxy, eventually, running, write_plugins

HOSTS = ["h1", "h2"]
WARM = 4

HEALTHY = """
class Healthy:
    def do_filter(self, hosts, vm, args):
        return hosts[1:]
"""

CONFIG = f"""
[calls]
deadline_seconds = 1
[workers]
warm = {WARM}
most = {WARM}
memory_mib = 64
load_seconds = 0.5
"""

#: Each keeps some MiB and gives its worker's process id as its weight.
GROWING = """
import mmap, os
kept = []
class Grow:
    mib = 48
    def do_score(self, hosts, vm, args):
        kept.append(b"x" * (self.mib << 20))
        return [(host, os.getpid()) for host in hosts]
class GrowLittle(Grow):
    mib = 12
class Devour:
    def do_filter(self, hosts, vm, args):
        shared = mmap.mmap(-1, 96 << 20)  # shared memory counts towards no limit of the kernel's
        while True:
            for page in range(0, len(shared), mmap.PAGESIZE):
                shared[page] = 1
"""


def test_an_idle_worker_that_grew_is_replaced_and_nobody_is_blamed(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", growing=GROWING)
    with running(folder, config=CONFIG) as proxy:
        answer = proxy.scores(["Grow", "GrowLittle"], ["h"])
        assert answer["result_code"] == 0
        pids = {unit: pid for _, pid, unit in answer["result"]}
        eventually(lambda: not _serves(proxy, pids["Grow"]))
        eventually(lambda: len(proxy.workers()) == WARM)
        assert _serves(proxy, pids["GrowLittle"]), "less than half of the limit is no reason"
        eventually(lambda: re.search(rf"worker {pids['Grow']} of \S+ grew by (4[89]|5\d) MiB", proxy.log))
        metrics = _metrics(proxy)
    assert "unit_failures_total{" not in metrics
    assert _restarts(metrics) == 0


def test_a_worker_that_outgrows_its_limit_is_ended_in_the_middle_of_a_call(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", growing=GROWING, healthy=HEALTHY)
    with running(folder, config=CONFIG.replace("deadline_seconds = 1", "deadline_seconds = 30")) as proxy:
        answer = proxy.filters(["Devour", "Healthy"], HOSTS)
        assert answer["plugin_errors"] == {"Devour": ["outgrew its memory limit; it filtered no host"]}
        assert answer["result"] == HOSTS[1:]
        eventually(lambda: len(proxy.workers()) == WARM)
        assert 'cause="memory"' in _metrics(proxy)


def test_workers_that_end_unasked_are_counted(tmp_path: Path) -> None:
    dying = "import os\nclass Die:\n    def do_filter(self, hosts, vm, args):\n        os._exit(3)\n"
    folder = write_plugins(tmp_path / "plugins", dying=dying, healthy=HEALTHY)
    config = f'{CONFIG}\n[[plugins]]\ndirectory = "{folder}"\ncalls_per_worker = 1\n'
    with running(folder, config=config) as proxy:
        proxy.filters(["Healthy"], HOSTS)  # its worker ends because we ask it to
        proxy.filters(["Die"], HOSTS)
        assert _restarts(_metrics(proxy)) == 1
        eventually(lambda: _ready(proxy) == len(proxy.workers()) == WARM)
        proxy.workers()[0].kill()
        eventually(lambda: _restarts(_metrics(proxy)) == 2)


#: What a module's import may do to its process, and what becomes of a call to a unit of such a module.
DEATHS = {
    "os._exit(7)": "ended its worker process with exit status 7",
    "ctypes.string_at(0)": "crashed its worker process (SIGSEGV)",
    "while True: pass": "did not answer in time (1 s)",
}


#: A module whose import goes well the first time, when the proxy tries it out.
ONCE = """
import ctypes, os, threading
if {condition}:
    {death}
open({tried!r}, "w").close()
{further}
class Once:
    def do_filter(self, hosts, vm, args):
        return hosts
"""
A_THREAD = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


def _once(place: Path, death: str, condition: str = "", further: str = "") -> Path:
    tried = str(place / "tried")
    condition = condition or f"os.path.exists({tried!r})"
    once = ONCE.format(condition=condition, death=death, tried=tried, further=further)
    return write_plugins(place / "plugins", once=once, healthy=HEALTHY)


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_in_each_worker_costs_its_own_units(tmp_path: Path, death: str) -> None:
    with running(_once(tmp_path, death, further=A_THREAD), config=CONFIG) as proxy:
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert DEATHS[death] in answer["plugin_errors"]["Once"][0]
        eventually(lambda: len(proxy.workers()) == WARM)
        assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 0


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_ever_after_costs_its_own_units(tmp_path: Path, death: str) -> None:
    with running(_once(tmp_path, death), config=CONFIG) as proxy:
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert list(answer["plugin_errors"]) == ["Once"]
        eventually(lambda: "once.py: cannot be loaded: its import" in proxy.log)


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_in_the_parent_only_is_left_to_the_workers(
    tmp_path: Path, death: str
) -> None:
    folder = _once(tmp_path, death, condition="os.getsid(0) != os.getpid()")
    with running(folder, config=CONFIG) as proxy:
        assert proxy.filters(["Once", "Healthy"], HOSTS)["result_code"] == 0
        eventually(lambda: "once.py could be loaded once but not twice" in proxy.log)


#: What a plugin may leave to happen at each fork: as long as the file `spoilt` is there, it does.
AT_FORK = """
import os
def spoil():
    if os.path.exists({spoilt!r}):
        with open({forks!r}, "a") as forks:
            forks.write("x")
        {deed}
os.register_at_fork({hook}=spoil)
"""


class Spoilt:
    """A plugin folder in which forks fail at will."""

    def __init__(self, place: Path, deed: str, hook: str = "after_in_child") -> None:
        self._spoilt = place / "spoilt"
        self._forks = place / "forks"
        source = AT_FORK.format(spoilt=str(self._spoilt), forks=str(self._forks), deed=deed, hook=hook)
        self.folder = write_plugins(place / "plugins", at_fork=source, healthy=HEALTHY)

    def begin(self) -> None:
        self._spoilt.touch()

    def end(self) -> None:
        self._spoilt.unlink()

    @property
    def forks(self) -> int:
        """How many forks it has spoilt."""
        return len(self._forks.read_text()) if self._forks.exists() else 0


@pytest.mark.parametrize(
    ("deed", "said"),
    [("os._exit(3)", "it ended before it was ready"), ("while True: pass", "it was not ready within 0.5 s")],
)
def test_workers_that_do_not_start_are_tried_again_later_and_later(
    tmp_path: Path, deed: str, said: str
) -> None:
    spoilt = Spoilt(tmp_path, deed)
    with running(spoilt.folder, config=CONFIG) as proxy:
        for _ in range(2):  # what was in the past does not count
            spoilt.begin()
            before, told = spoilt.forks, len(_delays(proxy, said))
            _kill_workers(proxy)
            answer = proxy.filters(["Healthy"], HOSTS)
            assert (answer["result_code"], answer["result"]) == (1, HOSTS)
            eventually(lambda: "got no worker in time" in proxy.log)
            eventually(lambda told=told: len(_delays(proxy, said)) >= told + 3)
            spoilt.end()
            eventually(lambda: len(proxy.workers()) == WARM)
            eventually(lambda: proxy.filters(["Healthy"], HOSTS)["result_code"] == 0)
            delays = _delays(proxy, said)[told:]
            assert delays[:3] == [FIRST_SECONDS * 2**number for number in range(3)]
            assert spoilt.forks - before <= WARM * len(delays)
        eventually(lambda: len(proxy.workers()) == WARM)


def test_a_parent_that_ends_at_each_fork_is_not_started_in_a_rush(tmp_path: Path) -> None:
    spoilt = Spoilt(tmp_path, "os._exit(3)", hook="after_in_parent")
    with running(spoilt.folder, config=CONFIG) as proxy:
        spoilt.begin()
        _kill_workers(proxy)
        assert "got no worker in time" in str(proxy.filters(["Healthy"], HOSTS))
        spoilt.end()
        # Delays of 0.1, 0.2, 0.4, 0.8 s pass: more than the deadline of 1 s.
        assert 1 <= spoilt.forks <= 6
        eventually(lambda: proxy.filters(["Healthy"], HOSTS)["result_code"] == 0)
        eventually(lambda: len(proxy.workers()) == WARM)


def test_a_parent_that_is_killed_while_workers_start_leaves_their_number_right(tmp_path: Path) -> None:
    spoilt = Spoilt(tmp_path, "while True: pass")
    with running(spoilt.folder, config=CONFIG.replace("load_seconds = 0.5", "load_seconds = 60")) as proxy:
        spoilt.begin()
        _kill_workers(proxy)
        eventually(lambda: spoilt.forks == WARM)
        spoilt.end()
        (zygote,) = psutil.Process(proxy.process.pid).children()
        zygote.send_signal(signal.SIGKILL)
        eventually(lambda: len(proxy.workers()) == WARM)
        assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 0
        victim = proxy.workers()[0]
        victim.kill()
        eventually(lambda: not _serves(proxy, victim.pid) and _ready(proxy) == len(proxy.workers()) == WARM)


def test_ending_while_plugins_are_loaded_leaves_nothing_behind(tmp_path: Path) -> None:
    mark = {"MARK_OF_THIS_TEST": os.urandom(8).hex()}
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    with running(folder, config=f"{CONFIG}[reload]\nwatch_seconds = 0.05\n", environment=mark) as proxy:
        before = len(proxy.descendants())
        write_plugins(folder, hanging="while True: pass")
        eventually(lambda: len(proxy.descendants()) > before + 1)
        proxy.stop()
        assert _marked(mark) == []


def test_ending_while_a_parent_is_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    mark = {"MARK_OF_THIS_TEST": os.urandom(8).hex()}
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    with running(folder, config=CONFIG, environment=mark) as proxy:
        (zygote,) = psutil.Process(proxy.process.pid).children()
        zygote.send_signal(signal.SIGKILL)
        eventually(lambda: "has ended; restarting it" in proxy.log)
        proxy.stop()
        assert _marked(mark) == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), max_size=40))
def test_each_failure_in_a_row_doubles_the_delay(events: list[tuple[bool, float]]) -> None:
    now = [1000.0]
    back_off = BackOff(lambda: now[0])
    due, row = now[0], 0
    for failed, pause in events:
        now[0] += pause
        assert (back_off.remaining == 0) == (now[0] >= due)
        if not failed:
            back_off.succeeded()
            due, row = now[0], 0
        elif now[0] < due:
            assert back_off.failed() is None, "it belongs to the failure before"
        else:
            expected = min(LONGEST_SECONDS, FIRST_SECONDS * 2**row)
            assert back_off.failed() == expected
            due, row = now[0] + expected, row + 1


def _delays(proxy: RunningProxy, said: str) -> list[float]:
    return [float(delay) for delay in re.findall(rf"{re.escape(said)}; next try in ([\d.]+) s", proxy.log)]


def _pids(proxy: RunningProxy) -> list[int]:
    return [worker.pid for worker in proxy.workers()]


def _serves(proxy: RunningProxy, pid: int) -> bool:
    return pid in _pids(proxy)


def _kill_workers(proxy: RunningProxy) -> None:
    for worker in proxy.workers():
        worker.kill()


def _ready(proxy: RunningProxy) -> float:
    return _value(_metrics(proxy), "ovirt_scheduler_proxy_workers")


def _metrics(proxy: RunningProxy) -> str:
    with urllib.request.urlopen(f"{proxy.url}metrics") as response:
        return str(response.read().decode())


def _restarts(metrics: str) -> float:
    return _value(metrics, "ovirt_scheduler_proxy_worker_restarts_total")


def _value(metrics: str, name: str) -> float:
    found = re.search(rf"^{name}\{{.*\}} ([\d.e+]+)$", metrics, re.MULTILINE)
    assert found
    return float(found[1])


def _marked(mark: dict[str, str]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if mark.items() <= process.environ().items():
                found.append(process)
        except psutil.Error:
            continue
    return found
