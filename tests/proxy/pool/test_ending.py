"""A proxy that ends leaves no process behind, whatever it was doing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from ..running import eventually, running, write_plugins
from .watching import CONFIG, HEALTHY


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


def _marked(mark: dict[str, str]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if mark.items() <= process.environ().items():
                found.append(process)
        except psutil.Error:
            continue
    return found
