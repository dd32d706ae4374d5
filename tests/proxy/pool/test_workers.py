"""Workers that grow too large or end unasked: replaced, and only the guilty pay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..running import eventually, running, write_plugins
from .watching import CONFIG, HEALTHY, HOSTS, WARM, metrics, ready, restarts, serves

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

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
        eventually(lambda: not serves(proxy, pids["Grow"]))
        eventually(lambda: len(proxy.workers()) == WARM)
        assert serves(proxy, pids["GrowLittle"]), "less than half of the limit is no reason"
        eventually(lambda: re.search(rf"worker {pids['Grow']} of \S+ grew by (4[89]|5\d) MiB", proxy.log))
        page = metrics(proxy)
    assert "unit_failures_total{" not in page
    assert restarts(page) == 0


def test_a_worker_that_outgrows_its_limit_is_ended_in_the_middle_of_a_call(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", growing=GROWING, healthy=HEALTHY)
    with running(folder, config=CONFIG.replace("deadline_seconds = 1", "deadline_seconds = 30")) as proxy:
        answer = proxy.filters(["Devour", "Healthy"], HOSTS)
        assert answer["plugin_errors"] == {"Devour": ["outgrew its memory limit; it filtered no host"]}
        assert answer["result"] == HOSTS[1:]
        eventually(lambda: len(proxy.workers()) == WARM)
        assert 'cause="memory"' in metrics(proxy)


def test_workers_that_end_unasked_are_counted(tmp_path: Path) -> None:
    dying = "import os\nclass Die:\n    def do_filter(self, hosts, vm, args):\n        os._exit(3)\n"
    folder = write_plugins(tmp_path / "plugins", dying=dying, healthy=HEALTHY)
    config = f'{CONFIG}\n[[plugins]]\ndirectory = "{folder}"\ncalls_per_worker = 1\n'
    with running(folder, config=config) as proxy:
        proxy.filters(["Healthy"], HOSTS)  # its worker ends because we ask it to
        proxy.filters(["Die"], HOSTS)
        assert restarts(metrics(proxy)) == 1
        eventually(lambda: ready(proxy) == len(proxy.workers()) == WARM)
        proxy.workers()[0].kill()
        eventually(lambda: restarts(metrics(proxy)) == 2)


def test_threads_that_a_unit_leaves_behind_take_no_memory_from_others(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        leaving="""
        import threading, time
        class Leaving:
            def do_filter(self, hosts, vm, args):
                for _ in range(40):
                    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
                return hosts
        """,
        large="""
        class Large:
            def do_filter(self, hosts, vm, args):
                return hosts if bytearray(300 << 20) else []
        """,
    )
    with running(folder, config="[workers]\nwarm = 1\nmost = 1\n") as proxy:
        for _ in range(3):
            assert proxy.filters(["Leaving"], ["h1"])["result_code"] == 0
            assert proxy.filters(["Large"], ["h1"])["plugin_errors"] == {}


def test_an_alarm_that_a_unit_leaves_behind_does_not_end_the_next_one(tmp_path: Path) -> None:
    alarming = """
    import signal
    class Alarming:
        def do_filter(self, hosts, vm, args):
            signal.alarm(600)
            return hosts
    class Undisturbed:
        def do_filter(self, hosts, vm, args):
            return [] if signal.getitimer(signal.ITIMER_REAL)[0] else hosts
    """
    folder = write_plugins(tmp_path / "plugins", alarming=alarming)
    with running(folder, config="[workers]\nwarm = 1\nmost = 1\n") as proxy:
        assert proxy.filters(["Alarming"], HOSTS)["result"] == HOSTS
        assert proxy.filters(["Undisturbed"], HOSTS)["result"] == HOSTS
