"""A unit that awaits something is asked again in a moment, and holds no worker until then."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..running import RunningProxy, running, write_plugins

#: These assertions depend on real time.
pytestmark = [pytest.mark.timing, pytest.mark.system]

UNITS = """
import pathlib, time

class Away(LookupError):
    awaits = True

class Keep:
    def do_filter(self, hosts, vm, args):
        if vm.startswith("unknown"):
            raise Away(f"no VM {vm}")
        if vm.startswith("late"):
            asked = pathlib.Path(args["folder"]) / f"{vm}-{time.monotonic_ns()}"
            asked.touch()
            if len(list(asked.parent.glob(f"{vm}-*"))) < 3:
                raise Away(f"no VM {vm} yet")
        return hosts[:1]
    def do_score(self, hosts, vm, args):
        raise Away(f"no VM {vm}")
"""


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[RunningProxy]:
    with running(write_plugins(tmp_path / "plugins", units=UNITS)) as started:
        yield started


def ask(proxy: RunningProxy, vm: str, **properties: str) -> Any:
    with proxy.client() as client:
        return client.runFilters(["Keep"], ["h1", "h2"], vm, properties)


def test_it_is_asked_until_it_has_what_it_awaits(proxy: RunningProxy, tmp_path: Path) -> None:
    assert ask(proxy, "late", folder=str(tmp_path))["result"] == ["h1"]
    assert len(list(tmp_path.glob("late-*"))) == 3


def test_what_does_not_come_is_a_failure_soon(proxy: RunningProxy) -> None:
    began = time.monotonic()
    answer = ask(proxy, "unknown")
    assert answer["result"] == ["h1", "h2"]
    assert answer["plugin_errors"]["Keep"][0].startswith("raised Away: no VM unknown")
    assert time.monotonic() - began < 1.0
    with proxy.client() as client:
        assert client.runCostFunctions([["Keep", 1]], ["h1"], "v", {})["plugin_errors"]["Keep"]


def test_eight_who_ask_about_what_is_not_there_hold_up_nobody(proxy: RunningProxy) -> None:
    def seconds() -> float:
        """What one call takes, by the median."""
        taken = []
        for _ in range(9):
            began = time.monotonic()
            assert ask(proxy, "known")["result"] == ["h1"]
            taken.append(time.monotonic() - began)
        return sorted(taken)[4]

    alone, ended = seconds(), threading.Event()

    def keep_asking(number: int) -> None:
        while not ended.is_set():
            ask(proxy, f"unknown-{number}")

    threads = [threading.Thread(target=keep_asking, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.5)
        assert seconds() < alone + 0.05
    finally:
        ended.set()
        for thread in threads:
            thread.join()
