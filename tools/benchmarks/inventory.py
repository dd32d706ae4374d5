"""What the inventory costs the engine and its machine, at rest and under churn, and how fast it parses."""

from __future__ import annotations

import gc
import io
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import psutil
from ovirtsdk4 import readers
from ovirtsdk4.xml import XmlReader

from ovirt_placement import config, inventory
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.engine.parsing import clusters, hosts, vms
from ovirt_placement.store.keys import KeyStore, Run
from ovirt_service.tables import table
from tests.repeating import repeating

from .proxy import quantiles
from .world import (
    EVENTS_PER_SECOND,
    INVENTORY_USER,
    WORKERS_USER,
    World,
    await_statistics,
    churning,
    processor_seconds,
    running,
)

#: Each answer, what reads it here, and what reads it in the SDK.
READERS: dict[str, tuple[dict[str, str], Callable[[bytes], object], type]] = {
    "/clusters": ({"follow": "affinity_groups"}, clusters.read, readers.ClusterReader),
    "/hosts": ({}, hosts.read, readers.HostReader),
    "/vms": ({}, vms.read, readers.VmReader),
    "/affinitylabels": ({"follow": "vms,hosts"}, clusters.labels, readers.AffinityLabelReader),
}
ROUNDS = 3
WINDOW_SECONDS = 20.0
REST_SECONDS = 60.0
SETTLING_SECONDS = 5.0
READINGS_PER_SECOND = 10
#: Of this many names, each running VM has some.
KEY_NAMES = 40
FROZEN_KEYS = 8
#: This many VMs a second have other keys from then on, while the engine is busy.
STARTS_PER_SECOND = 3


def main() -> None:
    with running() as world:
        file = world.folder / f"{INVENTORY_USER}.toml"
        _parsing(file)
        _remember(world)
        await_statistics(world.config)
        rows = [_watched("at rest", world, _sleep)]
        decide = partial(_decide, world)
        rows.append(_watched(f"{READINGS_PER_SECOND} decisions a second", world, decide))
        with churning(world.engine, world.state), _restarting(world):
            time.sleep(SETTLING_SECONDS)
            rows.append(_watched(f"and {EVENTS_PER_SECOND} events a second", world, decide))
    print("\nthe service, and a reader")
    headers, *lines = _columns(rows)
    print(table(lines, headers))


def _remember(world: World) -> None:
    """Let every running VM have started with some keys."""
    store = _opened(world.folder)
    dice = random.Random(1)
    store.begin_runs([_run(vm.id, dice) for vm in world.snapshot.vms if vm.host is not None])
    store.close()


@contextmanager
def _restarting(world: World) -> Iterator[None]:
    """Give VMs other keys all the while, one after the other, as if they had started again."""
    running = [vm.id for vm in world.snapshot.vms if vm.host is not None]
    dice = random.Random(2)

    def restart() -> None:
        store.begin_runs([_run(dice.choice(running), dice)])

    with closing(_opened(world.folder)) as store, repeating(restart, every=1 / STARTS_PER_SECOND):
        yield


def _run(vm: str, dice: random.Random) -> Run:
    names = sorted(dice.sample(range(KEY_NAMES), FROZEN_KEYS))
    return Run(vm, None, tuple((f"C{name}", round(dice.random(), 1)) for name in names))


def _opened(folder: Path) -> KeyStore:
    return KeyStore(f"sqlite:///{folder}/store.db", engine="default", patience_seconds=30)


def _columns(windows: list[dict[str, str]]) -> list[list[str]]:
    """Show each window as a column."""
    return [[name, *(window.get(name, "") for window in windows)] for name in windows[-1]]


def _parsing(file: Path) -> None:
    """Parse the same answers with the SDK's reader and with ours, in turns."""
    rows: list[list[object]] = []
    total = [0.0, 0.0]
    with connect(config.load(file, {}).engine) as connection:
        for path, (query, ours, theirs) in READERS.items():
            content = connection.get(path, **query)
            best = [float("inf"), float("inf")]
            for _ in range(ROUNDS):
                for which, read in enumerate((ours, _sdk(theirs))):
                    best[which] = min(best[which], _seconds(read, content))
            total = [total[which] + best[which] for which in (0, 1)]
            rows.append(_ratio(path, len(content), *best))
    rows.append(_ratio("together", None, *total))
    print("parsing the same bytes, best of three, ms of processor time")
    headers = ["answer", "MiB", "ours", "the SDK's", "the SDK's/ours"]
    print(table(rows, headers))


def _ratio(name: str, size: int | None, ours: float, theirs: float) -> list[object]:
    mebibytes = "" if size is None else f"{size / 2**20:.1f}"
    return [name, mebibytes, f"{ours * 1e3:.0f}", f"{theirs * 1e3:.0f}", f"{theirs / ours:.1f}"]


def _sdk(reader: type) -> Callable[[bytes], object]:
    def read(content: bytes) -> object:
        xml = XmlReader(io.BytesIO(content))
        try:
            xml.forward()
            return reader.read_many(xml)
        finally:
            xml.close()

    return read


def _seconds(read: Callable[[bytes], object], content: bytes) -> float:
    gc.collect()
    began = time.process_time()
    read(content)
    return time.process_time() - began


def _watched(title: str, world: World, do: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Watch the service while something is done."""
    service = world.process("inventory run")
    before, busy, began = world.requests(), processor_seconds(service), time.monotonic()
    found = do()
    seconds = time.monotonic() - began
    made = world.requests()[INVENTORY_USER] - before[INVENTORY_USER]
    return {
        "": title,
        "requests of the service a minute": f"{made / seconds * 60:.0f}",
        **found,
        "the service: processor share": f"{(processor_seconds(service) - busy) / seconds:.0%}",
        "the service: resident, MiB": f"{service.memory_info().rss / 2**20:.0f}",
    }


def _sleep() -> dict[str, str]:
    """Decide nothing, long enough for a burst to be over and for each larger reading to be due again."""
    time.sleep(REST_SECONDS)
    return {}


def _decide(world: World) -> dict[str, str]:
    """Let a reader ask for snapshots as decisions do."""
    before = world.requests()[WORKERS_USER]
    command = [sys.executable, "-m", "tools.benchmarks.inventory"]
    command.append(str(world.folder / f"{WORKERS_USER}.toml"))
    reader = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(reader.stdout)
    made = world.requests()[WORKERS_USER] - before
    return {
        "requests of the reader a decision": f"{made / found['decisions']:.3f}",
        "versions a second": f"{found['versions'] / found['seconds']:.1f}",
        "age of the snapshot, p50 and longest, ms": f"{found['age50']:.0f}  {found['age_longest']:.0f}",
        "a decision's snapshot, p50 and p99, ms": f"{found['p50']:.2f}  {found['p99']:.2f}",
        "the same on a new version, p50, ms": f"{found['new50']:.2f}" if found["new50"] else "",
        "a reader: resident, MiB": f"{found['rss']:.0f}",
    }


def read_steadily(file: Path) -> None:
    """Ask for a snapshot as decisions do, and print what that cost."""
    settings = config.load(file, {})
    times, ages, new = [], [], {}
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < WINDOW_SECONDS:
        started = time.perf_counter()
        published = inventory.known(config=settings).publication
        times.append(time.perf_counter() - started)
        if published is not None:
            new.setdefault(published.version, times[-1])
            ages.append(published.age_seconds * 1e3)
        time.sleep(max(0.0, len(times) / READINGS_PER_SECOND - elapsed))
    p50, p99 = quantiles(times)
    _, *later = new.values()  # the first is decoded whole
    print(
        json.dumps(
            {
                "seconds": time.monotonic() - began,
                "decisions": len(times),
                "versions": len(later),
                "p50": p50,
                "p99": p99,
                "new50": statistics.median(later) * 1e3 if later else None,
                "age50": sorted(ages)[len(ages) // 2],
                "age_longest": max(ages),
                "rss": psutil.Process().memory_info().rss / 2**20,
            }
        )
    )


if __name__ == "__main__":
    read_steadily(Path(sys.argv[1]))
