"""Workers that grow too large, end unasked or await something: they are replaced, and only the guilty pay."""

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..running import RunningProxy, eventually, serving, units
from .watching import CONFIG, HEALTHY, HOSTS, WARM, ready, restarts, serves

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

ONE_WORKER = "[workers]\nwarm = 1\nmost = 1\n"

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
    with serving(tmp_path, config=CONFIG, growing=GROWING) as proxy:
        answer = proxy.scores(["Grow", "GrowLittle"], ["h"])
        assert answer["result_code"] == 0
        pids = {unit: pid for _, pid, unit in answer["result"]}
        eventually(lambda: not serves(proxy, pids["Grow"]))
        eventually(lambda: len(proxy.workers()) == WARM)
        assert serves(proxy, pids["GrowLittle"]), "less than half of the limit is no reason"
        eventually(lambda: re.search(rf"worker {pids['Grow']} of \S+ grew by (4[89]|5\d) MiB", proxy.log))
        page = proxy.metrics()
        assert restarts(proxy) == 0
    assert not [name for name, *_ in page if name == "unit_failures_total"]


def test_a_worker_that_outgrows_its_limit_is_ended_in_the_middle_of_a_call(tmp_path: Path) -> None:
    config = CONFIG.replace("deadline_seconds = 1", "deadline_seconds = 30")
    with serving(tmp_path, config=config, growing=GROWING, healthy=HEALTHY) as proxy:
        answer = proxy.filters(["Devour", "Healthy"], HOSTS)
        assert answer["plugin_errors"] == {"Devour": ["outgrew its memory limit; it filtered no host"]}
        assert answer["result"] == HOSTS[1:]
        eventually(lambda: len(proxy.workers()) == WARM)
        assert proxy.metrics()["unit_failures_total", "memory", "runFilters", "Devour"] == 1


def test_workers_that_end_unasked_are_counted(tmp_path: Path) -> None:
    config = f'{CONFIG}\n[[plugins]]\ndirectory = "{tmp_path}/plugins"\ncalls_per_worker = 1\n'
    with serving(
        tmp_path, config=config, dying=units(Die="import os; os._exit(3)"), healthy=HEALTHY
    ) as proxy:
        proxy.filters(["Healthy"], HOSTS)  # its worker ends because we ask it to
        proxy.filters(["Die"], HOSTS)
        assert restarts(proxy) == 1
        eventually(lambda: ready(proxy) == len(proxy.workers()) == WARM)
        proxy.workers()[0].kill()
        eventually(lambda: restarts(proxy) == 2)


def test_threads_that_a_unit_leaves_behind_take_no_memory_from_others(tmp_path: Path) -> None:
    plugins = units(
        Leaving="""
        import threading, time
        for _ in range(40):
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        return hosts
        """,
        Large="return hosts if bytearray(300 << 20) else []",
    )
    with serving(tmp_path, config=ONE_WORKER, units=plugins) as proxy:
        for _ in range(3):
            assert proxy.filters(["Leaving"], ["h1"])["result_code"] == 0
            assert proxy.filters(["Large"], ["h1"])["plugin_errors"] == {}


def test_an_alarm_that_a_unit_leaves_behind_does_not_end_the_next_one(tmp_path: Path) -> None:
    plugins = "import signal\n" + units(
        Alarming="signal.alarm(600)\nreturn hosts",
        Undisturbed="return [] if signal.getitimer(signal.ITIMER_REAL)[0] else hosts",
    )
    with serving(tmp_path, config=ONE_WORKER, units=plugins) as proxy:
        assert proxy.filters(["Alarming"], HOSTS)["result"] == HOSTS
        assert proxy.filters(["Undisturbed"], HOSTS)["result"] == HOSTS


AWAITING = """
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
def awaiting(tmp_path: Path) -> Iterator[RunningProxy]:
    with serving(tmp_path, units=AWAITING) as started:
        yield started


def ask(awaiting: RunningProxy, vm: str, **properties: str) -> Any:
    with awaiting.client() as client:
        return client.runFilters(["Keep"], ["h1", "h2"], vm, properties)


def test_it_is_asked_until_it_has_what_it_awaits(awaiting: RunningProxy, tmp_path: Path) -> None:
    assert ask(awaiting, "late", folder=str(tmp_path))["result"] == ["h1"]
    assert len(list(tmp_path.glob("late-*"))) == 3


def test_what_does_not_come_is_a_failure_soon(awaiting: RunningProxy) -> None:
    began = time.monotonic()
    answer = ask(awaiting, "unknown")
    assert answer["result"] == ["h1", "h2"]
    assert answer["plugin_errors"]["Keep"][0].startswith("raised Away: no VM unknown")
    assert time.monotonic() - began < 1.0
    with awaiting.client() as client:
        assert client.runCostFunctions([["Keep", 1]], ["h1"], "v", {})["plugin_errors"]["Keep"]


def test_eight_who_ask_about_what_is_not_there_hold_up_nobody(awaiting: RunningProxy) -> None:
    def seconds() -> float:
        """What one call takes, by the median."""
        taken = []
        for _ in range(9):
            began = time.monotonic()
            assert ask(awaiting, "known")["result"] == ["h1"]
            taken.append(time.monotonic() - began)
        return sorted(taken)[4]

    alone, ended = seconds(), threading.Event()

    def keep_asking(number: int) -> None:
        while not ended.is_set():
            ask(awaiting, f"unknown-{number}")

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
