"""Workers that do not start, or lose their parent: tried again, later each time."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
import pytest

from ovirt_scheduler_proxy.pool import BACK_OFF

from ..running import RunningProxy, eventually, running, write_plugins
from .watching import CONFIG, HEALTHY, HOSTS, WARM, kill_workers, ready, serves

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

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
