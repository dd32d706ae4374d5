"""The zygote's death ends all its workers at once: that costs a call one try, and none its answer."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from ..running import RunningProxy, eventually, running, write_plugins
from .watching import HEALTHY, HOSTS

UNITS = tuple(f"Held{number}" for number in range(6))
#: Each writes down its process, and waits until it is released, but for the second time.
HELD = "import os, time\n" + "".join(
    f"""
class {name}:
    def do_filter(self, hosts, vm, args):
        if not os.path.exists("{name}.pid"):
            with open("{name}.new", "w") as file:
                file.write(str(os.getpid()))
            os.rename("{name}.new", "{name}.pid")
            while not os.path.exists("{name}.go"):
                time.sleep(0.01)
        return hosts[1:]
"""
    for name in UNITS
)


def kill_zygote(proxy: RunningProxy) -> bool:
    """Whether there was one to kill."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for zygote in psutil.Process(proxy.process.pid).children():
            zygote.send_signal(signal.SIGKILL)
            return True
    return False


def test_a_call_does_not_spend_its_tries_on_workers_that_die_with_the_zygote(tmp_path: Path) -> None:
    """Idle workers stand in the order in which the call would be given one after the other of the dying."""
    folder = write_plugins(tmp_path / "plugins", held=HELD)
    config = f"[calls]\ndeadline_seconds = 60\n[workers]\nwarm = {len(UNITS)}\nmost = {len(UNITS)}\n"
    with running(folder, config=config) as proxy, ThreadPoolExecutor(len(UNITS)) as clients:
        calls = {name: clients.submit(proxy.filters, [name], HOSTS) for name in UNITS}
        eventually(lambda: len(list(folder.glob("*.pid"))) == len(UNITS))
        longest, *others = sorted(UNITS, key=lambda name: int((folder / f"{name}.pid").read_text()))
        for name in reversed(others):
            (folder / f"{name}.go").touch()
            assert calls[name].result()["result_code"] == 0
        assert kill_zygote(proxy)
        answer = calls[longest].result()
        assert answer == {"result_code": 0, "result": HOSTS[1:], "plugin_errors": {}, "errors": []}


@pytest.mark.system
@pytest.mark.parametrize("kills", [20, pytest.param(1000, marks=pytest.mark.nightly)])
def test_no_call_is_lost_while_zygotes_are_killed(tmp_path: Path, kills: int) -> None:
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    config = "[calls]\ndeadline_seconds = 60\n[workers]\nwarm = 4\nmost = 8\n"
    killed, over = 0, threading.Event()

    def call(_: int) -> int:
        done = 0
        with proxy.client() as client:
            while not over.is_set():
                answer = client.runFilters(["Healthy"], HOSTS, "vm", {})
                assert answer == {
                    "result_code": 0, "result": HOSTS[1:], "plugin_errors": {}, "errors": [],
                }  # fmt: skip
                done += 1
        return done

    with running(folder, config=config) as proxy, ThreadPoolExecutor(4) as clients:
        counts = clients.map(call, range(4))
        try:
            while killed < kills:
                eventually(proxy.workers)
                time.sleep(0.01 * (killed % 10))
                killed += kill_zygote(proxy)
        finally:
            over.set()
        assert sum(counts) > kills
