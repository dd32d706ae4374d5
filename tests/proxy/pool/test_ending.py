"""A proxy that ends leaves no process behind, whatever it was doing."""

import contextlib
import http.client
import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from ..running import RunningProxy, eventually, running, write_plugins
from .watching import CONFIG, HEALTHY

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

LINGERING = """
import subprocess
class Lingering:
    def do_filter(self, hosts, vm, args):
        subprocess.run(["sleep", "600"])
"""

CURIOUS = """
import os
class Curious:
    def do_filter(self, hosts, vm, args):
        return [name for name in hosts if name in os.environ]
"""


def test_ending_while_plugins_are_loaded_leaves_nothing_behind(tmp_path: Path) -> None:
    mark = {"MARK_OF_THIS_TEST": os.urandom(8).hex()}
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    with running(folder, config=f"{CONFIG}[reload]\nwatch_seconds = 0.05\n", environment=mark) as proxy:
        before = len(proxy.descendants())
        write_plugins(folder, hanging="while True: pass")
        eventually(lambda: len(proxy.descendants()) > before)
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
    tmp_path: Path, module: str
) -> None:
    mark = {"MARK_OF_THIS_TEST": os.urandom(8).hex()}
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    config = "[workers]\nload_seconds = 600\n[reload]\nwatch_seconds = 0.05\n"
    with running(folder, config=config, environment=mark) as proxy:
        before = len(proxy.descendants())
        write_plugins(folder, hanging=module)
        eventually(lambda: len(proxy.descendants()) > before)
        proxy.kill()
        eventually(lambda: _marked(mark) == [])


def test_a_proxy_that_is_killed_leaves_nothing_behind_of_what_units_do(tmp_path: Path) -> None:
    mark = {"MARK_OF_THIS_TEST": os.urandom(8).hex()}
    folder = write_plugins(tmp_path / "plugins", units=LINGERING)
    with running(folder, environment=mark) as proxy:
        before = len(proxy.descendants())
        asking = threading.Thread(target=_in_vain, args=(proxy,))
        asking.start()
        eventually(lambda: len(proxy.descendants()) > before)
        proxy.kill()
        eventually(lambda: _marked(mark) == [])
        asking.join()


def test_plugins_do_not_see_the_password(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", units=CURIOUS)
    with running(
        folder, environment={"OVIRT_PASSWORD": "secret", "OVIRT_TOKEN": "secret", "OTHER": "known"}
    ) as proxy:
        names = ["OTHER", "OVIRT_PASSWORD", "OVIRT_TOKEN"]
        assert proxy.filters(["Curious"], names)["result"] == ["OTHER"]


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
