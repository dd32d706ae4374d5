"""A large simulated engine that never rests, our inventory and our proxy: each a process of its own."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from demo.processes import Processes, address
from lxml import etree

from ovirt_placement.model import Snapshot, state_file
from ovirt_simulator.generate import Sizes, generate
from tests.configuration import write_configuration
from tests.paths import PLUGINS

SIZES = Sizes(hosts=500, vms=10_000, groups=1_000)
EVENTS_PER_SECOND = 20

#: Who asks the engine: the inventory, and the workers of the proxy, which should not.
INVENTORY_USER, WORKERS_USER = "reader@internal", "user@internal"

#: As /run is, where an inventory publishes.
_IN_MEMORY = "/dev/shm"

_ADMIN = {"Authorization": "Basic " + b64encode(b"admin@internal:password").decode()}
_TRIVIAL = """
class TrivialFilter:
    def do_filter(self, hosts, vm, args):
        return hosts
class TrivialWeight:
    def do_score(self, hosts, vm, args):
        return [(host, 0) for host in hosts]
"""


class World:
    """The running processes, and what they cost."""

    def __init__(self, folder: Path, engine: str, proxy: str, snapshot: Snapshot) -> None:
        self.inventory_directory = folder / "inventory"
        self.port = urlsplit(proxy).port or 0
        self.snapshot = snapshot
        self._engine = engine

    def requests(self) -> dict[str, int]:
        return requests(self._engine)

    def last_event(self) -> int:
        """The id of the newest event: how many there have been."""
        connection = http.client.HTTPConnection(urlsplit(self._engine).netloc)
        connection.request("GET", "/ovirt-engine/api/events?max=1", headers=_ADMIN)
        found = etree.fromstring(connection.getresponse().read())
        connection.close()
        return max((int(event.get("id", "0")) for event in found), default=0)

    def workers(self) -> list[psutil.Process]:
        """The proxy's workers that have our plugins: those that have the library loaded."""
        proxies = [process for process in _children() if "ovirt-scheduler-proxy" in _command(process)]
        zygotes = [zygote for proxy in proxies for zygote in proxy.children()]
        ours = [zygote for zygote in zygotes if str(PLUGINS) in _command(zygote) + zygote.cwd()]
        return [worker for zygote in ours for worker in zygote.children()]

    def inventory(self) -> psutil.Process:
        return next(process for process in _children() if "inventory" in _command(process).split())


@contextmanager
def running() -> Iterator[World]:
    """Run all of it, with churn, until the block ends."""
    snapshot = generate(SIZES, seed=1)
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as name:
        folder = Path(name)
        (folder / "state.json").write_bytes(state_file.dumps(snapshot))
        (folder / "trivial").mkdir()
        (folder / "trivial" / "trivial.py").write_text(_TRIVIAL)
        environment = {"OVIRT_PLACEMENT_CONFIG": str(folder / "workers.toml")}
        with Processes(folder, environment) as processes:
            engine = _start(
                processes, f"ovirt-simulator run --listen 127.0.0.1:0 --state {folder}/state.json"
            )
            for user, file in ((INVENTORY_USER, "inventory.toml"), (WORKERS_USER, "workers.toml")):
                write_configuration(folder, f"{engine}/ovirt-engine/api", name=file, user=user)
            _start(processes, f"ovirt-placement inventory run --config {folder}/inventory.toml")
            proxy = _start(
                processes,
                f"ovirt-scheduler-proxy run --listen 127.0.0.1:0 --plugins {PLUGINS} "
                f"--plugins {folder}/trivial",
            )
            with churning(engine, folder / "state.json"):
                yield World(folder, engine, proxy, snapshot)


def _start(processes: Processes, command: str) -> str:
    arguments = command.split()
    return address(processes.start(arguments[0], arguments))


def _children() -> list[psutil.Process]:
    return psutil.Process().children()


def _command(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


def requests(engine: str) -> dict[str, int]:
    """How many requests each user has made to the engine."""
    connection = http.client.HTTPConnection(urlsplit(engine).netloc)
    connection.request("GET", "/simulator/requests")
    counts: dict[str, int] = json.loads(connection.getresponse().read())
    connection.close()
    return counts


@contextmanager
def churning(engine: str, state: Path) -> Iterator[None]:
    """Let a process of its own keep the engine busy."""
    command = [sys.executable, "-m", "tools.benchmarks.placement_world", engine, str(state)]
    with subprocess.Popen(command) as process:
        try:
            yield
            if process.poll() is not None:
                raise RuntimeError("nothing kept the engine busy any more")
        finally:
            process.terminate()


def churn(engine: str, state: Path) -> None:
    """Migrate, stop and start VMs for ever: this many events each second, by what each is known to log."""
    snapshot = state_file.load(state)
    dice = random.Random(1)
    hosts = [host.id for host in snapshot.hosts]
    running = deque(vm.id for vm in snapshot.vms if vm.host is not None)
    stopped = deque(vm.id for vm in snapshot.vms if vm.host is None)
    dice.shuffle(running)
    connection = http.client.HTTPConnection(urlsplit(engine).netloc)
    headers = {**_ADMIN, "Content-Type": "application/xml"}

    def act(vm: str, action: str, body: str = "") -> None:
        path = f"/ovirt-engine/api/vms/{vm}/{action}"
        connection.request("POST", path, f"<action>{body}</action>", headers)
        connection.getresponse().read()

    def migrate() -> int:
        running.rotate()
        act(running[0], "migrate", f'<host id="{dice.choice(hosts)}"/>')
        return 2

    def stop() -> int:
        vm = running.pop()
        act(vm, "stop")
        stopped.appendleft(vm)
        return 2

    def start() -> int:
        vm = stopped.pop()
        named = f'<host id="{dice.choice(hosts)}"/>'
        act(vm, "start", f"<vm><placement_policy><hosts>{named}</hosts></placement_policy></vm>")
        running.appendleft(vm)
        return 3

    due = time.monotonic()
    while True:
        logged = dice.choice((migrate, stop, start if stopped else migrate))()
        due += logged / EVENTS_PER_SECOND
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    churn(sys.argv[1], Path(sys.argv[2]))
