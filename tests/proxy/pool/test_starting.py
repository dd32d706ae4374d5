"""Workers that do not start, lose their zygote, or fail to import a module: tried again, later each time."""

import contextlib
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from ovirt_scheduler_proxy.pool import BACK_OFF

from ..running import RunningProxy, eventually, running, serving, units, well, write_plugins
from .watching import CONFIG, HEALTHY, HOSTS, WARM, kill_workers, ready, serves

#: What a plugin may leave to happen at each fork: as long as the file `spoilt` is there, it does.
AT_FORK = """
import os, stat
def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False
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
    [
        ("os._exit(3)", "it ended before it was ready"),
        ("while True: pass", "it was not ready within 0.5 s"),
        ("for one in filter(is_socket, range(3, 60)): os.write(one, b'x' * 64)", "it ended before it was"),
    ],
)
@pytest.mark.system
@pytest.mark.timing
def test_workers_that_do_not_start_are_tried_again_later_and_later(
    tmp_path: Path, deed: str, said: str
) -> None:
    spoilt = Spoilt(tmp_path, deed)
    with running(spoilt.folder, config=CONFIG) as proxy:
        for _ in range(2):  # what was in the past does not count
            spoilt.begin()
            before, reported = spoilt.forks, len(_delays(proxy))
            kill_workers(proxy)
            answer = proxy.filters(["Healthy"], HOSTS)
            assert (answer["result_code"], answer["result"]) == (1, HOSTS)
            eventually(lambda: "got no worker in time" in proxy.log)
            eventually(lambda reported=reported: len(_delays(proxy)) >= reported + 3)
            assert said in proxy.log
            spoilt.end()
            eventually(lambda: len(proxy.workers()) == WARM)
            eventually(lambda: proxy.filters(["Healthy"], HOSTS)["result_code"] == 0)
            delays = _delays(proxy)[reported:]
            assert delays[:3] == [BACK_OFF.pause_after(failures) for failures in (1, 2, 3)]
            assert spoilt.forks - before <= WARM * len(delays)
        eventually(lambda: len(proxy.workers()) == WARM)


@pytest.mark.system
@pytest.mark.timing
def test_a_parent_that_ends_at_each_fork_is_not_started_in_a_rush(tmp_path: Path) -> None:
    spoilt = Spoilt(tmp_path, "os._exit(3)", hook="after_in_parent")
    with running(spoilt.folder, config=CONFIG) as proxy:
        spoilt.begin()
        kill_workers(proxy)
        assert "got no worker in time" in str(proxy.filters(["Healthy"], HOSTS))
        spoilt.end()
        # Delays of 0.1, 0.2, 0.4, 0.8 s pass: more than the deadline of 1 s.
        assert 1 <= spoilt.forks <= 6
        eventually(lambda: proxy.filters(["Healthy"], HOSTS)["result_code"] == 0)
        eventually(lambda: len(proxy.workers()) == WARM)


@pytest.mark.system
@pytest.mark.timing
def test_a_parent_that_is_killed_while_workers_start_leaves_their_number_right(tmp_path: Path) -> None:
    spoilt = Spoilt(tmp_path, "while True: pass")
    with running(spoilt.folder, config=CONFIG.replace("load_seconds = 0.5", "load_seconds = 60")) as proxy:
        spoilt.begin()
        kill_workers(proxy)
        eventually(lambda: spoilt.forks == WARM)
        spoilt.end()
        (zygote,) = psutil.Process(proxy.process.pid).children()
        zygote.send_signal(signal.SIGKILL)
        eventually(lambda: len(proxy.workers()) == WARM)
        assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 0
        victim = proxy.workers()[0]
        victim.kill()
        eventually(lambda: not serves(proxy, victim.pid) and ready(proxy) == len(proxy.workers()) == WARM)


def _delays(proxy: RunningProxy) -> list[float]:
    """After each start that failed; one that is killed while it starts fails in another way than the rest."""
    return [float(delay) for delay in re.findall(r"; next try in ([\d.]+) s", proxy.log)]


UNITS = tuple(f"Held{number}" for number in range(6))
#: Each writes down its process, and waits until it is released, but for the second time.
HOLD = """
name = type(self).__name__
if not os.path.exists(f"{name}.pid"):
    with open(f"{name}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{name}.new", f"{name}.pid")
    while not os.path.exists(f"{name}.go"):
        time.sleep(0.01)
return hosts[1:]
"""


def kill_zygote(proxy: RunningProxy) -> bool:
    """Whether there was one to kill."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for zygote in psutil.Process(proxy.process.pid).children():
            zygote.send_signal(signal.SIGKILL)
            return True
    return False


def test_a_call_does_not_spend_its_tries_on_workers_that_die_with_the_zygote(tmp_path: Path) -> None:
    """Idle workers stand in the order in which the call would be given one after the other of the dying."""
    held = "import os, time\n" + units(**dict.fromkeys(UNITS, HOLD))
    folder = write_plugins(tmp_path / "plugins", held=held)
    config = f"[calls]\ndeadline_seconds = 60\n[workers]\nwarm = {len(UNITS)}\nmost = {len(UNITS)}\n"
    with running(folder, config=config) as proxy, ThreadPoolExecutor(len(UNITS)) as clients:
        calls = {name: clients.submit(proxy.filters, [name], HOSTS) for name in UNITS}
        eventually(lambda: len(list(folder.glob("*.pid"))) == len(UNITS))
        longest, *others = sorted(UNITS, key=lambda name: int((folder / f"{name}.pid").read_text()))
        for name in reversed(others):
            (folder / f"{name}.go").touch()
            assert calls[name].result()["result_code"] == 0
        assert kill_zygote(proxy)
        assert calls[longest].result() == well(HOSTS[1:])


def kill_worker(proxy: RunningProxy) -> bool:
    """The same of one of its workers."""
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
        random.choice(proxy.workers()).kill()
        return True
    return False


@pytest.mark.system
@pytest.mark.parametrize(
    ("kill", "kills"),
    [(kill_worker, 20), (kill_zygote, 20), pytest.param(kill_zygote, 1000, marks=pytest.mark.nightly)],
)
def test_no_call_is_lost_while_workers_and_zygotes_are_killed(
    tmp_path: Path, kill: Callable[[RunningProxy], bool], kills: int
) -> None:
    config = "[calls]\ndeadline_seconds = 60\n[workers]\nwarm = 4\nmost = 8\n"
    killed, over = 0, threading.Event()

    def call(_: int) -> int:
        done = 0
        with proxy.client() as client:
            while not over.is_set():
                assert client.runFilters(["Healthy"], HOSTS, "vm", {}) == well(HOSTS[1:])
                done += 1
        return done

    with serving(tmp_path, config=config, healthy=HEALTHY) as proxy, ThreadPoolExecutor(4) as clients:
        counts = clients.map(call, range(4))
        try:
            while killed < kills:
                eventually(proxy.workers)
                time.sleep(0.01 * (killed % 10))
                killed += kill(proxy)
        finally:
            over.set()
        assert sum(counts) > kills


#: What a module's import may do to its process, and what becomes of a call to a unit of such a module.
DEATHS = {
    "os._exit(7)": "ended its worker process with exit status 7",
    "ctypes.string_at(0)": "crashed its worker process (SIGSEGV)",
    "while True: pass": "did not answer in time (1 s)",
}


#: A module whose import goes well the first time, when the proxy learns that it cannot be shared.
ONCE = """
import ctypes, os, threading
if os.path.exists({tried!r}):
    {death}
open({tried!r}, "w").close()
threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


def _once(place: Path, death: str) -> str:
    return ONCE.format(death=death, tried=str(place / "tried")) + units(Once="return hosts")


@pytest.mark.system
@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_in_each_worker_costs_its_own_units(tmp_path: Path, death: str) -> None:
    with serving(tmp_path, config=CONFIG, once=_once(tmp_path, death), healthy=HEALTHY) as proxy:
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert DEATHS[death] in answer["plugin_errors"]["Once"][0]
        eventually(lambda: len(proxy.workers()) == WARM)
        assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 0


#: As services do that report by a descriptor that they were given.
READY = "for one in range(3, 40):\n    try: os.write(one, b'ready')\n    except OSError: pass"


@pytest.mark.system
@pytest.mark.parametrize("death", [*DEATHS, READY])
def test_an_import_that_ends_or_holds_up_its_process_costs_its_own_units(tmp_path: Path, death: str) -> None:
    defective = (
        "import ctypes, os, signal, subprocess\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'])\n"
        f"{death}\n{units(Defective='pass')}"
    )
    with serving(tmp_path, config=CONFIG, defective=defective, healthy=HEALTHY) as proxy:
        answer = proxy.filters(["Defective", "Healthy"], HOSTS)
        assert (answer["result"], list(answer["plugin_errors"])) == (HOSTS[1:], ["Defective"])
        eventually(lambda: "defective.py: cannot be loaded: its import" in proxy.log)
        assert not [left for left in proxy.descendants() if left.name() == "sleep"]


@pytest.mark.system
def test_an_import_that_raises_what_has_no_text_costs_its_own_units(tmp_path: Path) -> None:
    mute = "raise type('Mute', (Exception,), {'__str__': lambda _: 1 / 0})"
    with serving(tmp_path, config=CONFIG, once=_once(tmp_path, mute), healthy=HEALTHY) as proxy:
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert "could not be imported: Mute;" in answer["plugin_errors"]["Once"][0]
        assert "Traceback" not in proxy.log


#: As many as a proxy with a thousand connections has, before it starts a worker.
CROWDED = "ulimit -n 4096; for number in {1..1100}; do exec {held}</dev/null; done"
CLOSING = "import os\n" + units(Close="os.closerange(3, 64)\nwhile True: pass", Exit="os._exit(3)")


@pytest.mark.system
def test_more_than_select_knows(tmp_path: Path) -> None:
    with serving(tmp_path, shell=CROWDED, closing=CLOSING, healthy=HEALTHY) as proxy:
        answer = proxy.filters(["Close", "Exit", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert answer["plugin_errors"] == {
            "Close": ["closed its worker's connection to the proxy; it filtered no host"],
            "Exit": ["ended its worker process with exit status 3; it filtered no host"],
        }
        assert "Traceback" not in proxy.log
