"""A plugin folder that goes away or is badly reloaded takes nothing with it that works."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import psutil
import pytest

from ..pool.watching import CONFIG, HEALTHY, HOSTS, WARM, kill_workers
from ..running import eventually, running, write_plugins

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

RELOADING = f"{CONFIG}[reload]\nwatch_seconds = 0.05\n"

#: Each loads without an error, and leaves no worker that answers.
KEEPS_WORKERS_FROM_STARTING = {
    "a fork hook that hangs": "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(600))",
    "a fork hook that ends": "import os\nos.register_at_fork(after_in_child=lambda: os._exit(3))",
    "a lowered limit": "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))",
    "no output": "import os\nos.dup2 = None",
}


def test_a_folder_that_is_renamed_costs_no_unit(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    with running(folder, config=RELOADING) as proxy:
        folder.rename(tmp_path / "elsewhere")
        eventually(lambda: "stay as they were" in proxy.log)
        kill_workers(proxy)  # those that come now have never seen the folder
        for _ in range(4 * WARM):
            assert proxy.filters(["Healthy"], HOSTS) == {
                "result_code": 0, "result": HOSTS[1:], "plugin_errors": {}, "errors": [],
            }  # fmt: skip
        (tmp_path / "elsewhere").rename(folder)
        write_plugins(folder, healthy=HEALTHY.replace("hosts[1:]", "hosts[:1]"))
        eventually(lambda: proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[:1])


def test_a_folder_that_is_emptied_keeps_its_units(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    with running(folder, config=RELOADING) as proxy:
        (folder / "healthy.py").unlink()
        eventually(lambda: "has no unit any more" in proxy.log)
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]


@pytest.mark.parametrize("source", KEEPS_WORKERS_FROM_STARTING.values(), ids=KEEPS_WORKERS_FROM_STARTING)
def test_plugins_whose_workers_do_not_answer_take_nobodys_place(tmp_path: Path, source: str) -> None:
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    with running(folder, config=RELOADING) as proxy:
        write_plugins(folder, bad=source)
        eventually(lambda: "stay as they were" in proxy.log)
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]


def test_without_any_worker_calls_are_answered_at_once(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", healthy=HEALTHY)
    with running(folder, config=CONFIG) as proxy:
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
