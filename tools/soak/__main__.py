"""`make soak`: runs the soak and prints its windows. Ends with 1 if anything was lost, wrong, or grew."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil

from ovirt_simulator.generate import Sizes
from tests.repeating import repeating
from tools.stage import of_records, running

from .asking import KNOWN_UNITS, Clients
from .windows import Window, measure, verdict

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
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000, help="how many (default 1,000,000)")
    parser.add_argument("--windows", type=int, default=20, help="how often it is measured (default 20 times)")
    parser.add_argument("--kill-seconds", type=float, default=1.0, help="until a worker is killed (1)")
    options = parser.parse_args()
    windows: list[Window] = []
    for window in soak(options.calls, options.windows, options.kill_seconds):
        windows.append(window)
        print(", ".join(f"{name} {cell}" for name, cell in window.row().items()), flush=True)
    print(f"\n{of_records([each.row() for each in windows])}")
    found = verdict(windows)
    print("\n".join(found) or "Nothing was lost or wrong, and nothing grew.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
