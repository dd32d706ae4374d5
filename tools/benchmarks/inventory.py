"""What the inventory costs the engine and its machine, at rest and under churn."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from ovirt_placement import config, inventory
from ovirt_service.text.tables import table
from tools.stage import (
    EVENTS_PER_SECOND,
    INVENTORY_USER,
    WORKERS_USER,
    Stage,
    processor_seconds,
    quantiles,
    running,
)

WINDOW_SECONDS = 20.0
#: Long enough for a burst to be over and for each larger reading to be due again.
REST_SECONDS = 60.0
SETTLING_SECONDS = 5.0
READINGS_PER_SECOND = 10


def main() -> None:
    with running() as stage:
        stage.await_statistics()
        rows = [_watched("at rest", stage, _rest)]
        decide = partial(_decide, stage)
        rows.append(_watched(f"{READINGS_PER_SECOND} decisions a second", stage, decide))
        with stage.churning():
            time.sleep(SETTLING_SECONDS)
            rows.append(_watched(f"and {EVENTS_PER_SECOND} events a second", stage, decide))
    headers, *lines = ([name, *(window.get(name, "") for window in rows)] for name in rows[-1])
    print(f"the service, and a reader\n{table(lines, headers)}")


def _watched(title: str, stage: Stage, do: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Watch the service while something is done."""
    service = stage.process("inventory run")
    before, busy, began = stage.requests(), processor_seconds(service), time.monotonic()
    found = do()
    seconds = time.monotonic() - began
    made = stage.requests()[INVENTORY_USER] - before[INVENTORY_USER]
    return {
        "": title,
        "requests of the service a minute": f"{made / seconds * 60:.0f}",
        **found,
        "the service: processor share": f"{(processor_seconds(service) - busy) / seconds:.0%}",
        "the service: resident, MiB": f"{service.memory_info().rss / 2**20:.0f}",
    }


def _rest() -> dict[str, str]:
    time.sleep(REST_SECONDS)
    return {}


def _decide(stage: Stage) -> dict[str, str]:
    """Let a reader ask for snapshots as decisions do."""
    before = stage.requests()[WORKERS_USER]
    file = str(stage.folder / f"{WORKERS_USER}.toml")
    command = [sys.executable, "-m", "tools.benchmarks.inventory", file]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    made = stage.requests()[WORKERS_USER] - before
    return {"requests of the reader": str(made), **found}


def read_steadily(file: Path) -> None:
    """Ask for a snapshot as decisions do, and print what that cost."""
    settings = config.load(file, {})
    times: list[float] = []
    ages: list[float] = []
    versions: set[int] = set()
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < WINDOW_SECONDS:
        started = time.perf_counter()
        published = inventory.known(config=settings).publication
        times.append(time.perf_counter() - started)
        if published is not None:
            versions.add(published.version)
            ages.append(published.age_seconds * 1e3)
        time.sleep(max(0.0, len(times) / READINGS_PER_SECOND - elapsed))
    found = {
        "versions a second": f"{(len(versions) - 1) / WINDOW_SECONDS:.1f}",
        "age of the snapshot, p50 and longest, ms": f"{sorted(ages)[len(ages) // 2]:.0f}  {max(ages):.0f}",
        "a decision's snapshot, p50 and p99, ms": "{:.2f}  {:.2f}".format(*quantiles(times)),
        "a reader: resident, MiB": f"{psutil.Process().memory_info().rss / 2**20:.0f}",
    }
    print(json.dumps(found))


if __name__ == "__main__":
    read_steadily(Path(sys.argv[1]))
