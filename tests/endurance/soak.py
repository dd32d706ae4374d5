"""`make soak`: calls the proxy for long, and ends with 1 if anything was lost, wrong, or grew.

Each call asks units of its own making, whose answers are known beforehand, besides the real ones, whose
answers hang on an engine that changes all the time: of those only the form is known.
"""

import argparse
import random
import statistics
import sys
import threading
import time
import uuid
import xmlrpc.client
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast
from zlib import crc32

import psutil

from ovirt_simulator.generate import Sizes
from tests.repeating import repeating
from tools.stage import records_table, running

FILTERS = ("AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter")
WEIGHTS = ("SoftAffinityWeight", "HostAffinityWeight", "HaReservationWeight", "PlacementKeyWeight")
BALANCE = "HaReservationBalance"
CLIENTS = 4

#: A plugin: its answers hang on nothing but what it is asked.
KNOWN_UNITS = """
import uuid
import zlib

class KnownFilter:
    def do_filter(self, hosts, vm, args):
        return [host for host in hosts if zlib.crc32((host + vm).encode()) % 4]

class KnownWeight:
    def do_score(self, hosts, vm, args):
        return [(host, zlib.crc32((vm + host).encode()) % 1000) for host in hosts]

class KnownBalance:
    def do_balance(self, hosts, args):
        return str(uuid.UUID(int=zlib.crc32("".join(hosts).encode()))), hosts[:2]
"""

_PROPERTIES = {"HighUtilization": "80"}


@dataclass(frozen=True)
class Heard:
    """One answer: whether a unit failed, and what is wrong with it, if anything."""

    failed: bool
    wrong: str = ""


def ask(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: Sequence[str], vm: str) -> Heard:
    """Make a call as chance has it. Raises OSError and `xmlrpc.client.Error` where there is no answer."""
    asked = chance.sample(hosts, chance.randint(1, len(hosts)))
    call = chance.choices((_ask_filters, _ask_weights, _ask_balance), (5, 4, 1))[0]
    return call(proxy, chance, asked, vm)


def _ask_filters(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: list[str], vm: str) -> Heard:
    units = ["KnownFilter", *chance.sample(FILTERS, chance.randint(0, 2))]
    failed, kept = _reported(proxy.runFilters(units, hosts, vm, _PROPERTIES))
    allowed = [host for host in hosts if crc32((host + vm).encode()) % 4]
    right = kept == (allowed if len(units) == 1 else [host for host in allowed if host in kept])
    return Heard(failed, "" if right else f"{units} kept {kept} of {hosts} for {vm}")


def _ask_weights(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: list[str], vm: str) -> Heard:
    units = ["KnownWeight", *chance.sample(WEIGHTS, chance.randint(0, 2))]
    failed, weights = _reported(proxy.runCostFunctions([[unit, 1] for unit in units], hosts, vm, _PROPERTIES))
    found: dict[str, list[list[Any]]] = {}
    for host, weight, unit in weights:
        found.setdefault(unit, []).append([host, weight])
    known = found.pop("KnownWeight", [])
    right = known == [[host, crc32((vm + host).encode()) % 1000] for host in hosts]
    right &= all([host for host, _ in each] == hosts for each in found.values())
    right &= found.keys() < set(units[1:]) if failed else found.keys() == set(units[1:])
    return Heard(failed, "" if right else f"{units} weighed {weights} for {vm} on {hosts}")


def _ask_balance(proxy: xmlrpc.client.ServerProxy, chance: random.Random, hosts: list[str], _: str) -> Heard:
    unit = chance.choice(("KnownBalance", BALANCE))
    failed, (vm, targets) = _reported(proxy.runLoadBalancing(unit, hosts, _PROPERTIES))
    if unit == BALANCE:
        right = set(targets) <= set(hosts) and bool(vm) == bool(targets) and not (failed and vm)
    else:
        named = str(uuid.UUID(int=crc32("".join(hosts).encode())))
        right = not failed and [vm, targets] == [named, hosts[:2]]
    return Heard(failed, "" if right else f"{unit} moves {vm!r} to {targets} of {hosts}")


def _reported(answer: object) -> tuple[bool, Any]:
    reported = cast("dict[str, Any]", answer)
    return bool(reported["result_code"]), reported["result"]


@dataclass
class Tally:
    """What all clients have seen since the last window."""

    #: Seconds until each answer.
    times: list[float] = field(default_factory=list)
    #: Answers in which a unit failed.
    failed: int = 0
    #: What was wrong with answers, and why calls were not answered: sentences.
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Clients:
    """Threads that call the proxy as the engine does, until this many calls are made."""

    def __init__(self, url: str, hosts: Sequence[str], vms: Sequence[str], calls: int) -> None:
        self._url, self._hosts, self._vms = url, hosts, vms
        self._lock = threading.Lock()
        self._tally = Tally()
        #: How many calls are still to be made.
        self.left = calls
        self._threads = [threading.Thread(target=self._call_all, args=(seed,)) for seed in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    @property
    def calling(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def take(self) -> Tally:
        with self._lock:
            tally, self._tally = self._tally, Tally()
        return tally

    def stop(self) -> None:
        with self._lock:
            self.left = 0
        for thread in self._threads:
            thread.join()

    def _call_all(self, seed: int) -> None:
        chance = random.Random(seed)
        with xmlrpc.client.ServerProxy(self._url) as proxy:
            while self._is_another_wanted():
                self._call(proxy, chance)

    def _is_another_wanted(self) -> bool:
        with self._lock:
            self.left -= 1
            return self.left >= 0

    def _call(self, proxy: xmlrpc.client.ServerProxy, chance: random.Random) -> None:
        began, heard, lost = time.monotonic(), Heard(failed=False), ""
        try:
            heard = ask(proxy, chance, self._hosts, chance.choice(self._vms))
        except (OSError, xmlrpc.client.Error) as error:
            lost = repr(error)
        with self._lock:
            self._tally.times.append(time.monotonic() - began)
            self._tally.failed += heard.failed
            self._tally.wrong += [heard.wrong] * bool(heard.wrong)
            self._tally.lost += [lost] * bool(lost)


#: This many times as much as in the first half may be held in the second; and descriptors and threads more.
_MORE_MEMORY = 1.15
_MORE_COUNTED = 16
#: A busy machine makes calls slow, but not the proxy's own work for each of them.
_MORE_WORK = 1.3
_SLOWER = 3.0
#: Sentences of each kind that are shown.
_SHOWN = 5
#: A worker that was killed is a zombie until its parent looks.
_REAPED_SECONDS = 5.0


@dataclass(frozen=True)
class Window:
    """The calls of one window, and what was held at its end; memory in MiB."""

    #: Since the start.
    calls: int
    seconds: float
    tally: Tally
    #: Seconds of the processor that the proxy itself has taken since its start.
    proxy_cpu: float
    proxy_mib: float
    zygotes_mib: float
    inventory_mib: float
    #: Of all workers, in the mean.
    worker_mib: float
    #: Of what lasts: those of workers, which come and go, are not among them.
    descriptors: int
    threads: int
    #: How many processes have ended, and nobody noticed.
    zombies: int

    @property
    def p99(self) -> float:
        ordered = sorted(self.tally.times) or [0.0]
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]

    def row(self) -> dict[str, str]:
        tally = self.tally
        return {
            "calls": f"{self.calls:,}",
            "calls/s": f"{len(tally.times) / self.seconds:.0f}",
            "p99 ms": f"{self.p99 * 1e3:.1f}",
            "proxy MiB": f"{self.proxy_mib:.1f}",
            "zygotes MiB": f"{self.zygotes_mib:.1f}",
            "inventory MiB": f"{self.inventory_mib:.1f}",
            "a worker MiB": f"{self.worker_mib:.1f}",
            "descriptors": str(self.descriptors),
            "threads": str(self.threads),
            "zombies": str(self.zombies),
            "failed": str(tally.failed),
            "wrong": str(len(tally.wrong)),
            "lost": str(len(tally.lost)),
        }


def measure(
    calls: int, seconds: float, tally: Tally, proxy: psutil.Process, inventory: psutil.Process
) -> Window:
    zombies, zygotes = _zombies(proxy), proxy.children()
    lasting, workers = [proxy, inventory, *zygotes], []
    for worker in (each for zygote in zygotes for each in zygote.children()):
        try:
            workers.append(_mib(worker))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it was killed just now
    times = proxy.cpu_times()
    return Window(
        calls,
        seconds,
        tally,
        times.user + times.system,
        _mib(proxy),
        sum(map(_mib, zygotes)),
        _mib(inventory),
        sum(workers) / max(1, len(workers)),
        sum(each.num_fds() for each in lasting),
        sum(each.num_threads() for each in lasting),
        zombies,
    )


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 2**20)


def _zombies(proxy: psutil.Process) -> int:
    """How many processes have ended and stay unnoticed."""
    until = time.monotonic() + _REAPED_SECONDS
    dead = _ended(proxy)
    while dead and time.monotonic() < until:
        time.sleep(0.1)
        dead &= _ended(proxy)
    return len(dead)


def _ended(proxy: psutil.Process) -> set[psutil.Process]:
    found = set()
    for process in proxy.children(recursive=True):
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                found.add(process)
        except psutil.NoSuchProcess:
            continue
    return found


def verdict(windows: Sequence[Window]) -> list[str]:
    """What is not as it should be: sentences."""
    found = []
    for what, heard in (
        ("answers were wrong", [text for window in windows for text in window.tally.wrong]),
        ("calls were lost", [text for window in windows for text in window.tally.lost]),
    ):
        if heard:
            found += [f"{len(heard)} {what}:", *(f"  {text}" for text in heard[:_SHOWN])]
    if failed := sum(window.tally.failed for window in windows):
        found.append(f"units failed in {failed} calls, which the log of the proxy explains")
    if windows[-1].zombies:
        found.append(f"{windows[-1].zombies} processes have ended, and nobody noticed")
    return [*found, *_growth(windows)]


def _growth(windows: Sequence[Window]) -> list[str]:
    """Compare the halves of what follows the first quarter, which is for warming up."""
    settled = windows[len(windows) // 4 :]
    if len(settled) < 4:
        return []
    middle = len(settled) // 2
    halves = settled[:middle], settled[middle:]
    found = []
    for name, measured, times, more in _LIMITS:
        early, late = (statistics.median(map(measured, half)) for half in halves)
        if late > early * times + more:
            found.append(f"{name} grew from {early:.1f} to {late:.1f}")
    early, late = (
        (half[-1].proxy_cpu - half[0].proxy_cpu) / max(1, half[-1].calls - half[0].calls) for half in halves
    )
    if late > early * _MORE_WORK:
        found.append(f"the proxy's work for a call (ms) grew from {early * 1e3:.1f} to {late * 1e3:.1f}")
    return found


#: What is compared: how often as much, and how much more, there may be.
_LIMITS: Sequence[tuple[str, Callable[[Window], float], float, float]] = (
    ("the proxy's memory (MiB)", lambda window: window.proxy_mib, _MORE_MEMORY, 0.0),
    ("the zygotes' memory (MiB)", lambda window: window.zygotes_mib, _MORE_MEMORY, 0.0),
    ("the workers' mean memory (MiB)", lambda window: window.worker_mib, _MORE_MEMORY, 0.0),
    ("the inventory's memory (MiB)", lambda window: window.inventory_mib, _MORE_MEMORY, 0.0),
    ("descriptors", lambda window: window.descriptors, 1.0, _MORE_COUNTED),
    ("threads", lambda window: window.threads, 1.0, _MORE_COUNTED),
    ("the 99th percentile (ms)", lambda window: window.p99 * 1e3, _SLOWER, 0.0),
)


SIZES = Sizes(hosts=20, vms=300, groups=30)


def soak(calls: int, windows: int, kill_seconds: float) -> Iterator[Window]:
    """Make the calls, and report each window when it is over; a worker is killed each `kill_seconds`."""
    chance = random.Random(1)
    with running(SIZES, proxy=True, plugin=KNOWN_UNITS) as stage, stage.churning():
        proxy, inventory = stage.process("ovirt-scheduler-proxy"), stage.process("inventory run")

        def kill() -> None:
            with suppress(psutil.NoSuchProcess):
                workers = [worker for zygote in proxy.children() for worker in zygote.children()]
                if workers:
                    chance.choice(workers).kill()

        clients = Clients(stage.proxy, stage.hosts, [vm.id for vm in stage.snapshot.vms], calls)
        try:
            with repeating(kill, every=kill_seconds):
                for number in range(1, windows + 1):
                    began, wanted = time.monotonic(), calls * (windows - number) // windows
                    while clients.left > wanted and clients.calling:
                        time.sleep(0.05)
                    if number == windows:
                        clients.stop()
                    seconds, done = time.monotonic() - began, calls - max(0, clients.left)
                    yield measure(done, seconds, clients.take(), proxy, inventory)
        finally:
            clients.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000, help="how many (default 1,000,000)")
    parser.add_argument("--windows", type=int, default=20, help="how often it is measured (default 20 times)")
    parser.add_argument("--kill-seconds", type=float, default=1.0, help="until a worker is killed (1)")
    options = parser.parse_args()
    windows: list[Window] = []
    for window in soak(options.calls, options.windows, options.kill_seconds):
        windows.append(window)
        print(", ".join(f"{name} {cell}" for name, cell in window.row().items()), flush=True)
    print(f"\n{records_table([each.row() for each in windows])}")
    found = verdict(windows)
    print("\n".join(found) or "Nothing was lost or wrong, and nothing grew.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
