"""A proxy that ends leaves no process behind, whatever it was doing."""

import contextlib
import http.client
import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from ..running import RunningProxy, eventually, serving, units, write_plugins
from .watching import CONFIG, HEALTHY

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

LINGERING = units(Lingering="import subprocess; subprocess.run(['sleep', '600'])")
CURIOUS = units(Curious="import os; return [name for name in hosts if name in os.environ]")
RELOADING = f"{CONFIG}[reload]\nwatch_seconds = 0.05\n"
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
