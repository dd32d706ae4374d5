"""Runs engine, inventory and proxy as processes, calls the proxy, and breaks things around it."""

from __future__ import annotations

import random
import tempfile
import threading
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from demo.processes import Processes, ProcessFailed, address

from ovirt_placement.model import Snapshot, state_file
from ovirt_simulator.generate import Sizes, generate
from tests.benchmarks.placement_world import churning
from tests.configuration import write_configuration
from tests.paths import PLUGINS

from .measuring import Window, held

SIZES = Sizes(hosts=20, vms=300, groups=30)
CLIENTS = 4

FILTERS = ["AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter"]
WEIGHTS = ["SoftAffinityWeight", "HostAffinityWeight", "HaReservationWeight", "PlacementKeyWeight"]

_PROXY = """
[log]
level = "error"
"""


@dataclass(frozen=True)
class Plan:
    calls: int
    windows: int
    engine_seconds: float
    kill_seconds: float


@dataclass
class Tally:
    """What all clients have seen since the last window."""

    times: list[float] = field(default_factory=list)
    failures: int = 0
    lost: int = 0


class Clients:
    """Threads that call as the engine does, until so many calls are made."""

    def __init__(self, url: str, snapshot: Snapshot, calls: int) -> None:
        self._url = url
        self._hosts = [host.id for host in snapshot.hosts]
        self._vms = [vm.id for vm in snapshot.vms]
        self._left = calls
        self._lock = threading.Lock()
        self._tally = Tally()
        self._threads = [threading.Thread(target=self._call_all, args=(seed,)) for seed in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    @property
    def left(self) -> int:
        return self._left

    def take(self) -> Tally:
        with self._lock:
            tally, self._tally = self._tally, Tally()
        return tally

    def stop(self) -> None:
        self._left = 0
        for thread in self._threads:
            thread.join()

    def _call_all(self, seed: int) -> None:
        dice = random.Random(seed)
        proxy = xmlrpc.client.ServerProxy(self._url)
        while self._left > 0:
            self._left -= 1
            began = time.monotonic()
            failed = lost = False
            try:
                failed = bool(self._call(proxy, dice)["result_code"])
            except (OSError, xmlrpc.client.Error):
                lost = True
            with self._lock:
                self._tally.times.append(time.monotonic() - began)
                self._tally.failures += failed
                self._tally.lost += lost

    def _call(self, proxy: xmlrpc.client.ServerProxy, dice: random.Random) -> dict[str, int]:
        hosts = dice.sample(self._hosts, dice.randint(1, len(self._hosts)))
        vm, properties = dice.choice(self._vms), {"HighUtilization": "80"}
        what = dice.randrange(10)
        if what < 5:
            return proxy.runFilters(FILTERS, hosts, vm, properties)  # type: ignore[return-value]
        if what < 9:
            return proxy.runCostFunctions([[name, 1] for name in WEIGHTS], hosts, vm, properties)  # type: ignore[return-value]
        return proxy.runLoadBalancing("HaReservationBalance", hosts, properties)  # type: ignore[return-value]


def soak(plan: Plan) -> Iterator[Window]:
    """Make the calls, and tell of each window when it is over."""
    snapshot = generate(SIZES, seed=1)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "state.json").write_bytes(state_file.dumps(snapshot))
        (folder / "proxy.toml").write_text(_PROXY)
        environment = {"OVIRT_PLACEMENT_CONFIG": str(folder / "placement.toml")}
        processes = stack.enter_context(Processes(folder, environment))
        engine = stack.enter_context(_living(processes, folder, plan.engine_seconds))
        write_configuration(folder, f"{engine}/ovirt-engine/api")
        _start(processes, "inventory", f"ovirt-placement inventory run --config {folder}/placement.toml")
        command = "ovirt-scheduler-proxy run --listen 127.0.0.1:0"
        url = _start(processes, "proxy", f"{command} --plugins {PLUGINS} --config {folder}/proxy.toml")
        proxy = next(child for child in psutil.Process().children() if "--plugins" in child.cmdline())
        stack.enter_context(_killing_workers(proxy, plan.kill_seconds))
        clients = Clients(url, snapshot, plan.calls)
        stack.callback(clients.stop)
        yield from _windows(plan, clients, proxy)


def _windows(plan: Plan, clients: Clients, proxy: psutil.Process) -> Iterator[Window]:
    for number in range(1, plan.windows + 1):
        began = time.monotonic()
        wanted = plan.calls * (plan.windows - number) // plan.windows
        while clients.left > wanted:
            time.sleep(0.05)
        tally, seconds = clients.take(), time.monotonic() - began
        done = plan.calls - max(0, clients.left)
        yield Window(done, seconds, tally.times, *held(proxy), tally.failures, tally.lost)


@contextmanager
def _living(processes: Processes, folder: Path, seconds: float) -> Iterator[str]:
    """A busy engine that restarts on the same port, again and again."""
    state, over = folder / "state.json", threading.Event()
    engine = _start(processes, "engine", f"ovirt-simulator run --listen 127.0.0.1:0 --state {state}")
    again = f"ovirt-simulator run --listen {urlsplit(engine).netloc} --state {state}"

    def live() -> None:
        while not over.is_set():
            with churning(engine, state):
                over.wait(seconds)
            processes.stop("engine")
            while not over.is_set():
                with suppress(ProcessFailed):
                    _start(processes, "engine", again)
                    break

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield engine
    finally:
        over.set()
        thread.join()


def _start(processes: Processes, name: str, command: str) -> str:
    return address(processes.start(name, command.split()))


@contextmanager
def _killing_workers(proxy: psutil.Process, seconds: float) -> Iterator[None]:
    over, dice = threading.Event(), random.Random(1)

    def kill() -> None:
        while not over.wait(seconds):
            with suppress(psutil.NoSuchProcess):
                workers = [worker for zygote in proxy.children() for worker in zygote.children()]
                if workers:
                    dice.choice(workers).kill()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
