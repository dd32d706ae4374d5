"""Runs engine, inventory and proxy as processes, calls the proxy, and breaks things around it."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from demo.processes import Processes, ProcessFailed, address

from ovirt_placement.model import state_file
from ovirt_simulator.generate import Sizes, generate
from tests.configuration import write_configuration
from tests.paths import PLUGINS
from tests.repeating import repeating
from tools.benchmarks.world import churning

from .asking import KNOWN_UNITS
from .clients import Clients
from .failures import FailureLog, Outage
from .measuring import measure
from .windows import Window

SIZES = Sizes(hosts=20, vms=300, groups=30)

_PROXY = """
[log]
level = "warning"
"""


@dataclass(frozen=True)
class Plan:
    calls: int
    windows: int
    #: How long an engine lives, and the time between two workers that are killed.
    engine_seconds: float
    kill_seconds: float


def soak(plan: Plan) -> Iterator[Window]:
    """Make the calls, and report each window when it is over."""
    snapshot = generate(SIZES, seed=1)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, outages = Path(name), list[Outage]()
        (folder / "state.json").write_bytes(state_file.dumps(snapshot))
        (folder / "proxy.toml").write_text(_PROXY)
        (folder / "known").mkdir()
        (folder / "known" / "known.py").write_text(KNOWN_UNITS)
        environment = {"OVIRT_PLACEMENT_CONFIG": str(folder / "placement.toml")}
        processes = stack.enter_context(Processes(folder, environment))
        engine = _start(
            processes, "engine", f"ovirt-simulator run --listen 127.0.0.1:0 --state {folder}/state.json"
        )
        write_configuration(folder, f"{engine}/ovirt-engine/api")
        _start(processes, "inventory", f"ovirt-placement inventory run --config {folder}/placement.toml")
        command = f"ovirt-scheduler-proxy run --listen 127.0.0.1:0 --config {folder}/proxy.toml"
        url = _start(processes, "proxy", f"{command} --plugins {PLUGINS} --plugins {folder}/known")
        proxy, inventory = _child("--plugins"), _child("inventory")
        living = stack.enter_context(_living(processes, engine, plan.engine_seconds, outages))
        stack.enter_context(_killing_workers(proxy, plan.kill_seconds))
        hosts, vms = [host.id for host in snapshot.hosts], [vm.id for vm in snapshot.vms]
        clients = Clients(url, hosts, vms, plan.calls)
        stack.callback(clients.stop)
        log = FailureLog(processes.log("proxy"), outages)
        for window in _windows(plan, clients, log, (proxy, inventory)):
            if living.done():
                living.result()
            yield window


def _windows(
    plan: Plan, clients: Clients, log: FailureLog, measured: tuple[psutil.Process, psutil.Process]
) -> Iterator[Window]:
    work, unreported = 0.0, 0
    for number in range(1, plan.windows + 1):
        began = time.monotonic()
        wanted = plan.calls * (plan.windows - number) // plan.windows
        while clients.left > wanted and clients.calling:
            time.sleep(0.05)
        if number == plan.windows:
            clients.stop()
        tally, seconds, held = clients.take(), time.monotonic() - began, measure(*measured)
        done = plan.calls - max(0, clients.left)
        log.wait_for(tally.failed + unreported)
        failures = log.take()
        unreported += tally.failed - failures.calls
        before, work = work, held.proxy_cpu
        yield Window(done, seconds, tally, failures, held, (work - before) / max(1, len(tally.times)))


@contextmanager
def _living(
    processes: Processes, engine: str, seconds: float, outages: list[Outage]
) -> Iterator[Future[None]]:
    """A busy engine that restarts on the same port, again and again."""
    state, over = processes.folder / "state.json", threading.Event()
    again = f"ovirt-simulator run --listen {urlsplit(engine).netloc} --state {state}"

    def live() -> None:
        while not over.is_set():
            with churning(engine, state):
                over.wait(seconds)
            if not over.is_set():
                outages.append(outage := Outage(time.time()))
                processes.stop("engine")
                _start_again(processes, again, over)
                outage.ended = time.time()

    with ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(live)
        finally:
            over.set()


def _start_again(processes: Processes, command: str, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(ProcessFailed):  # its port is not free yet
            _start(processes, "engine", command)
            return


def _start(processes: Processes, name: str, command: str) -> str:
    return address(processes.start(name, command.split()))


def _child(word: str) -> psutil.Process:
    return next(child for child in psutil.Process().children() if word in child.cmdline())


def _killing_workers(proxy: psutil.Process, seconds: float) -> AbstractContextManager[None]:
    chance = random.Random(1)

    def kill() -> None:
        with suppress(psutil.NoSuchProcess):
            workers = [worker for zygote in proxy.children() for worker in zygote.children()]
            if workers:
                chance.choice(workers).kill()

    return repeating(kill, every=seconds)
