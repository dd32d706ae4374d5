"""How plugins are run: by which interpreter, in which workers, how many of them at once, and for how long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..running import running, write_plugins
from .good import GOOD

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]


def test_modules_with_threads_and_connections_are_not_shared_between_workers(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        threaded="""
        import os, threading, time
        beats = []
        def beat():
            while True:
                time.sleep(0.01)
                beats.append(1)
        threading.Thread(target=beat, daemon=True).start()
        OWNER = os.getpid()
        class Beats:
            def do_filter(self, hosts, vm, args):
                seen = len(beats)
                while len(beats) == seen:
                    time.sleep(0.005)
                return hosts if OWNER == os.getpid() else []
        """,
        good=GOOD,
    )
    with running(folder, config="[calls]\ndeadline_seconds = 5\n") as proxy:
        answer = proxy.filters(["Beats", "Good"], ["h1"])
        assert answer == {"result_code": 0, "result": ["h1"], "plugin_errors": {}, "errors": []}


def test_a_folder_may_bring_its_own_interpreter(tmp_path: Path) -> None:
    own = tmp_path / "own"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(own)], check=True)
    (site,) = own.glob("lib/python*/site-packages")
    (site / "site_library.py").write_text("ANSWER = ['h2']\n")
    mine = write_plugins(tmp_path / "mine", good=GOOD)
    theirs = write_plugins(
        tmp_path / "theirs",
        site_unit="""
        import site_library
        try:
            import msgspec
        except ImportError:
            msgspec = None
        class FromSite:
            def do_filter(self, hosts, vm, args):
                return site_library.ANSWER if msgspec is None else []
        """,
    )
    config = f"""
    [[plugins]]
    directory = "{mine}"
    [[plugins]]
    directory = "{theirs}"
    python = "{own}/bin/python"
    """
    with running(config=config, environment={"TMPDIR": str(tmp_path)}) as proxy:
        assert proxy.filters(["Good", "FromSite"], ["h1", "h2"])["result"] == ["h2"]


def test_each_call_can_have_a_fresh_process(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        stateful="""
        class Stateful:
            seen = []
            def do_filter(self, hosts, vm, args):
                self.seen.append(vm)
                return hosts[: len(self.seen)]
        """,
    )
    config = f'[[plugins]]\ndirectory = "{folder}"\ncalls_per_worker = 1\n'
    hosts = ["h1", "h2", "h3"]
    with running(folder, config=config) as proxy:
        assert [proxy.filters(["Stateful"], hosts)["result"] for _ in range(12)] == [["h1"]] * 12
    with running(folder) as proxy:
        assert max(len(proxy.filters(["Stateful"], hosts)["result"]) for _ in range(12)) > 1


def test_a_plugin_is_reported_that_it_need_not_print_as_for_the_old_proxy(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        either="""
        import os
        class Either:
            def do_filter(self, hosts, vm, args):
                if os.environ.get("OVIRT_SCHEDULER_PROXY_TAKES") == "returned":
                    return hosts
                print(hosts[:1])
        """,
    )
    with running(folder) as proxy:
        assert proxy.filters(["Either"], ["h1", "h2"])["result"] == ["h1", "h2"]


def test_units_of_one_call_run_side_by_side(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        meeting="""
        import os, time
        class _Meet:
            def do_filter(self, hosts, vm, args):
                open(os.path.join(args["meeting"], type(self).__name__), "w").close()
                while len(os.listdir(args["meeting"])) < 3:
                    time.sleep(0.002)
                return hosts
        class MeetA(_Meet): pass
        class MeetB(_Meet): pass
        class MeetC(_Meet): pass
        """,
    )
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    with running(folder) as proxy:
        answer = proxy.filters(["MeetA", "MeetB", "MeetC"], ["h1"], {"meeting": str(meeting)})
    assert answer["result_code"] == 0
