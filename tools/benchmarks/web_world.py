"""The page next to an engine and an inventory, warm, for benchmarks."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import requests
from demo.processes import Processes, address

from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot, state_file
from ovirt_simulator.generate import Sizes, generate
from tests.configuration import PASSWORD, write_configuration

from .placement_world import INVENTORY_USER, WORKERS_USER

ADMIN = "admin@internal"
#: How often the inventory looks for events: an update takes what the page takes, and no pause of its source.
FOLLOWING = "interval_seconds = 0.05\n"


class Served(NamedTuple):
    """A page that is warm, and where its engine is."""

    root: str
    engine: str
    process: psutil.Process
    state: Snapshot
    #: Of the inventory.
    config: Config

    def session(self) -> requests.Session:
        asking = requests.Session()
        origin = self.root.partition("/ovirt-placement")[0]
        form = {"name": ADMIN, "password": PASSWORD}
        answer = asking.post(
            f"{self.root}/log-in", form, headers={"Origin": origin}, allow_redirects=False, timeout=120
        )
        cookie = answer.headers["set-cookie"].partition(";")[0]
        asking.headers.update({"Cookie": cookie})  # it is Secure, and this is plain HTTP on loopback
        return asking

    def path(self, view: str) -> str:
        running = next(vm for vm in self.state.vms if vm.host is not None)
        return self.root + view.format(cluster=self.state.clusters[0].id, vm=running.id)


@contextmanager
def serving(sizes: Sizes) -> Iterator[Served]:
    state = generate(sizes, seed=1)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        (folder / "state.json").write_bytes(state_file.dumps(state))
        with Processes(folder) as processes:
            start = f"ovirt-simulator run --listen 127.0.0.1:0 --state {folder}/state.json"
            engine = address(processes.start("ovirt-simulator", start.split()))
            for user, web in ((INVENTORY_USER, ""), (WORKERS_USER, '[web]\nlisten = "127.0.0.1:0"\n')):
                write_configuration(
                    folder,
                    f"{engine}/ovirt-engine/api",
                    name=f"{user}.toml",
                    user=user,
                    inventory=FOLLOWING,
                    more=web,
                )
            follow = f"ovirt-placement inventory run --config {folder}/{INVENTORY_USER}.toml"
            processes.start("inventory", follow.split())
            page = f"ovirt-placement-web run --config {folder}/{WORKERS_USER}.toml"
            root = address(processes.start("page", page.split())).rstrip("/")
            found = next(
                each
                for each in psutil.Process().children()
                if "ovirt-placement-web" in " ".join(each.cmdline())
            )
            served = Served(root, engine, found, state, configuration.load(folder / f"{INVENTORY_USER}.toml"))
            asking = served.session()
            while f"{sizes.hosts}</td>" not in asking.get(f"{root}/", timeout=120).text:
                time.sleep(0.2)
            _wait_for_statistics(served.config)
            yield served


def _wait_for_statistics(config: Config) -> None:
    """The first reading of all statistics keeps the simulator busy for seconds, on this machine."""
    while True:
        published = inventory.known(config=config, max_age=float("inf")).publication
        if published is not None and published.moments.statistics_at > float("-inf"):
            return
        time.sleep(0.2)


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def meanwhile(look: Callable[[], None]) -> Iterator[None]:
    """Look again and again, in a thread of its own, until this ends."""
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
