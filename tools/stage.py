"""A simulated engine with our inventory and, if wanted, the proxy and the page: each a process of its own."""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
import requests
from demo.stage import Processes, address
from lxml import etree

from ovirt_placement import config as configuration
from ovirt_placement.config import Config
from ovirt_placement.inventory.publication import age, ask_moments
from ovirt_placement.model import Snapshot, state_file
from ovirt_service.text import table
from ovirt_simulator.generate import Sizes, generate
from tests.configuration import PASSWORD, write_configuration
from tests.paths import PLUGINS

SIZES = Sizes(hosts=500, vms=10_000, groups=1_000)
EVENTS_PER_SECOND = 20

#: Who asks the engine: the inventory, and the workers of the proxy or the page, which should not.
INVENTORY_USER, WORKERS_USER, ADMIN = "reader@internal", "user@internal", "admin@internal"
_LOG_IN = (ADMIN, PASSWORD)

#: As /run is, where an inventory publishes.
_IN_MEMORY = "/dev/shm"
#: Units that do nothing: what a call costs beyond theirs is a unit's own.
TRIVIAL = """
class TrivialFilter:
    def do_filter(self, hosts, vm, args):
        return hosts
class TrivialWeight:
    def do_score(self, hosts, vm, args):
        return [(host, 0) for host in hosts]
"""
_PAGE = '[web]\nlisten = "127.0.0.1:0"\n'


def records_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of rows that name their columns."""
    headers = tuple(rows[0]) if rows else ()
    return table([[row.get(header, "") for header in headers] for row in rows], headers)


def quantiles(times: list[float]) -> tuple[float, float]:
    """p50 and p99 in milliseconds."""
    cuts = statistics.quantiles(times, n=100)
    return cuts[49] * 1e3, cuts[98] * 1e3


class Stage(NamedTuple):
    """The running processes, and what they cost."""

    folder: Path
    #: URL of the engine, and of the proxy or the page where they run.
    engine: str
    proxy: str
    page: str
    snapshot: Snapshot
    #: Of the inventory.
    config: Config

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def port(self) -> int:
        return urlsplit(self.proxy).port or 0

    @property
    def hosts(self) -> list[str]:
        return [host.id for host in self.snapshot.hosts]

    def requests(self) -> dict[str, int]:
        """Give how many requests the inventory, the workers and the administrator have made so far."""
        counts = json.loads(self._read("/simulator/requests"))
        return {user: counts.get(user, 0) for user in (INVENTORY_USER, WORKERS_USER, ADMIN)}

    def last_event(self) -> int:
        """Give the id of the newest event: how many there have been."""
        found = etree.fromstring(self._read("/ovirt-engine/api/events?max=1"))
        return max((int(event.get("id", "0")) for event in found), default=0)

    def process(self, word: str) -> psutil.Process:
        """Give the process that was started with a command that has this in it."""
        running = psutil.Process().children()
        return next(process for process in running if word in " ".join(process.cmdline()))

    def await_statistics(self) -> None:
        """Wait until the readings of the start are over, which keep the simulator busy for seconds."""
        directory = self.config.inventory.directory
        while not (found := ask_moments(directory, 30.0)) or age(found.statistics_at) is None:
            time.sleep(0.2)

    @contextmanager
    def churning(self) -> Iterator[None]:
        """Let a process of its own keep the engine busy."""
        command = [sys.executable, "-m", "tools.stage", self.engine, str(self.state)]
        with subprocess.Popen(command) as process:
            try:
                yield
                if process.poll() is not None:
                    raise RuntimeError("nothing kept the engine busy any more")
            finally:
                process.terminate()

    def _read(self, path: str) -> bytes:
        return requests.get(self.engine + path, auth=_LOG_IN, timeout=60).content


@contextmanager
def running(
    sizes: Sizes = SIZES, *, proxy: bool = False, page: bool = False, plugin: str = TRIVIAL
) -> Iterator[Stage]:
    """Run it until the block ends; `plugin` is a further plugin of the proxy's."""
    snapshot = generate(sizes, seed=1)
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as name:
        folder = Path(name)
        (folder / "state.json").write_bytes(state_file.dumps(snapshot))
        (folder / "plugins").mkdir()
        (folder / "plugins" / "further.py").write_text(plugin)
        environment = {"OVIRT_PLACEMENT_CONFIG": str(folder / f"{WORKERS_USER}.toml")}
        with Processes(folder, environment) as processes:

            def start(command: str) -> str:
                return address(processes.start(command.split()[0], command.split()))

            engine = start(f"ovirt-simulator run --listen 127.0.0.1:0 --state {folder}/state.json")
            for user, more in ((INVENTORY_USER, ""), (WORKERS_USER, _PAGE)):
                url, file = f"{engine}/ovirt-engine/api", f"{user}.toml"
                write_configuration(folder, url, name=file, user=user, more=more)
            start(f"ovirt-placement inventory run --config {folder}/{INVENTORY_USER}.toml")
            plugins = f"--plugins {PLUGINS} --plugins {folder}/plugins"
            scheduler = f"ovirt-scheduler-proxy run --listen 127.0.0.1:0 {plugins}"
            web = f"ovirt-placement-web run --config {folder}/{WORKERS_USER}.toml"
            yield Stage(
                folder,
                engine,
                start(scheduler) if proxy else "",
                start(web).rstrip("/") if page else "",
                snapshot,
                configuration.load(folder / f"{INVENTORY_USER}.toml", {}),
            )


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def churn(engine: str, state: Path) -> None:
    """Migrate, stop and start VMs for ever: this many events each second, by what each is known to log."""
    snapshot = state_file.load(state)
    dice = random.Random(1)
    hosts = [host.id for host in snapshot.hosts]
    running = deque(vm.id for vm in snapshot.vms if vm.host is not None)
    stopped = deque(vm.id for vm in snapshot.vms if vm.host is None)
    dice.shuffle(running)
    asking = requests.Session()
    asking.auth = _LOG_IN
    asking.headers["Content-Type"] = "application/xml"

    def act(vm: str, action: str, body: str = "") -> None:
        address = f"{engine}/ovirt-engine/api/vms/{vm}/{action}"
        asking.post(address, f"<action>{body}</action>", timeout=60)

    def host() -> str:
        return f'<host id="{dice.choice(hosts)}"/>'

    def migrate() -> int:
        running.rotate()
        act(running[0], "migrate", host())
        return 2

    def stop() -> int:
        vm = running.pop()
        act(vm, "stop")
        stopped.appendleft(vm)
        return 2

    def start() -> int:
        vm = stopped.pop()
        act(vm, "start", f"<vm><placement_policy><hosts>{host()}</hosts></placement_policy></vm>")
        running.appendleft(vm)
        return 3

    due = time.monotonic()
    while True:
        logged = dice.choice((migrate, stop, start if stopped else migrate))()
        due += logged / EVENTS_PER_SECOND
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    churn(sys.argv[1], Path(sys.argv[2]))
