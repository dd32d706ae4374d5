"""How plugins are run, and that a folder which goes away or is badly reloaded takes nothing with it."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.proxy.pool.watching import CONFIG, GOOD, HEALTHY, HOSTS, RELOADING, WARM, kill_workers
from tests.proxy.running import eventually, running, serving, units, well, write_plugins

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]


def test_modules_with_threads_and_connections_are_not_shared_between_workers(tmp_path: Path) -> None:
    threaded = """
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
    """
    config = "[calls]\ndeadline_seconds = 5\n"
    with serving(tmp_path, config=config, threaded=threaded, good=GOOD) as proxy:
        assert proxy.filters(["Beats", "Good"], ["h1"]) == well(["h1"])


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
    stateful = "seen = []\n" + units(Stateful="seen.append(vm)\nreturn hosts[: len(seen)]")
    folder = write_plugins(tmp_path / "plugins", stateful=stateful)
    config = f'[[plugins]]\ndirectory = "{folder}"\ncalls_per_worker = 1\n'
    hosts = ["h1", "h2", "h3"]
    with running(folder, config=config) as proxy:
        assert [proxy.filters(["Stateful"], hosts)["result"] for _ in range(12)] == [["h1"]] * 12
    with running(folder) as proxy:
        assert max(len(proxy.filters(["Stateful"], hosts)["result"]) for _ in range(12)) > 1


def test_a_plugin_is_reported_that_it_need_not_print_as_for_the_old_proxy(tmp_path: Path) -> None:
    either = units(
        Either="""
        import os
        if os.environ.get("OVIRT_SCHEDULER_PROXY_TAKES") == "returned":
            return hosts
        print(hosts[:1])
        """
    )
    with serving(tmp_path, either=either) as proxy:
        assert proxy.filters(["Either"], ["h1", "h2"])["result"] == ["h1", "h2"]


def test_units_of_one_call_run_side_by_side(tmp_path: Path) -> None:
    meet = """
    import os, time
    open(os.path.join(args["meeting"], type(self).__name__), "w").close()
    while len(os.listdir(args["meeting"])) < 3:
        time.sleep(0.002)
    return hosts
    """
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    with serving(tmp_path, meeting=units(MeetA=meet, MeetB=meet, MeetC=meet)) as proxy:
        answer = proxy.filters(["MeetA", "MeetB", "MeetC"], ["h1"], {"meeting": str(meeting)})
    assert answer["result_code"] == 0


#: Each loads without an error, and leaves no worker that answers.
KEEPS_WORKERS_FROM_STARTING = {
    "a fork hook that hangs": "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(600))",
    "a fork hook that ends": "import os\nos.register_at_fork(after_in_child=lambda: os._exit(3))",
    "a lowered limit": "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))",
    "no output": "import os\nos.dup2 = None",
}


def test_a_folder_that_is_renamed_costs_no_unit(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    with serving(tmp_path, config=RELOADING, healthy=HEALTHY) as proxy:
        folder.rename(tmp_path / "elsewhere")
        eventually(lambda: "stay as they were" in proxy.log)
        kill_workers(proxy)  # those that come now have never seen the folder
        for _ in range(4 * WARM):
            assert proxy.filters(["Healthy"], HOSTS) == well(HOSTS[1:])
        (tmp_path / "elsewhere").rename(folder)
        write_plugins(folder, healthy=HEALTHY.replace("hosts[1:]", "hosts[:1]"))
        eventually(lambda: proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[:1])


def test_a_link_that_leads_elsewhere_by_now_is_followed(tmp_path: Path) -> None:
    """As releases are deployed: each in a folder of its own, and a link to the one in use."""
    first = write_plugins(tmp_path / "first", healthy=HEALTHY)
    second = write_plugins(tmp_path / "second", healthy=HEALTHY.replace("hosts[1:]", "hosts[:1]"))
    (tmp_path / "current").symlink_to(first)
    with running(tmp_path / "current", config=RELOADING) as proxy:
        for target, kept in ((second, HOSTS[:1]), (first, HOSTS[1:])):
            (tmp_path / "new").symlink_to(target)
            (tmp_path / "new").rename(tmp_path / "current")
            eventually(lambda kept=kept: proxy.filters(["Healthy"], HOSTS)["result"] == kept)


def test_two_folders_that_a_link_makes_one_stay_as_they_were(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "first", healthy=HEALTHY)
    other = write_plugins(tmp_path / "second", good=GOOD)
    (tmp_path / "current").symlink_to(folder)
    config = RELOADING + "".join(
        f'[[plugins]]\ndirectory = "{one}"\n' for one in (tmp_path / "current", other)
    )
    with running(config=config) as proxy:
        (tmp_path / "new").symlink_to(other)
        (tmp_path / "new").rename(tmp_path / "current")
        eventually(lambda: "stay as they were" in proxy.log)
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]
        assert proxy.filters(["Good"], HOSTS) == well(HOSTS)


def test_a_folder_that_is_emptied_keeps_its_units(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    with serving(tmp_path, config=RELOADING, healthy=HEALTHY) as proxy:
        (folder / "healthy.py").unlink()
        eventually(lambda: "has no unit any more" in proxy.log)
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]


@pytest.mark.parametrize("source", KEEPS_WORKERS_FROM_STARTING.values(), ids=KEEPS_WORKERS_FROM_STARTING)
def test_plugins_whose_workers_do_not_answer_take_nobodys_place(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "plugins"
    with serving(tmp_path, config=RELOADING, healthy=HEALTHY) as proxy:
        write_plugins(folder, bad=source)
        eventually(lambda: "stay as they were" in proxy.log)
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]


def test_without_any_worker_calls_are_answered_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    with serving(tmp_path, config=CONFIG, healthy=HEALTHY) as proxy:
        shutil.rmtree(folder)
        old = proxy.descendants()
        (zygote,) = (process for process in old if process.ppid() == proxy.process.pid)
        zygote.kill()
        psutil.wait_procs(old, timeout=30)  # its workers end after it, and answer until then
        for _ in range(3):
            assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 1
        eventually(lambda: "none can be started" in proxy.log)
        started = time.monotonic()
        assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 1
        assert time.monotonic() - started < 0.5
        eventually(lambda: "cannot be read: No such file or directory" in proxy.log)
