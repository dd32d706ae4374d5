"""What the page costs: first views, an update until it is seen, frames, memory, and 50 viewers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psutil

from ovirt_service.tables import table
from ovirt_simulator.generate import Sizes
from tests.repeating import repeating

from .web_browser import ADMIN, FOLLOWING, Served, in_a_browser
from .world import SIZES, WORKERS_USER, await_statistics, processor_seconds, running

SMALL = Sizes(hosts=3, vms=30, groups=3)
VIEWERS = 50
VIEWING_SECONDS = 20.0
TRIES = 3
#: What a person sees first of a cluster, then of a VM.
VIEWS = (
    "/",
    "/cluster/{cluster}",
    "/map/{cluster}",
    "/api/v1/clusters/{cluster}/map",
    "/ha/{cluster}",
    "/vm/{vm}",
)


def main() -> None:
    columns = [("3 hosts, 30 VMs", SMALL), (f"{SIZES.hosts} hosts, {SIZES.vms:,} VMs", SIZES)]
    found = []
    for title, sizes in columns:
        with running(sizes, page=True, inventory=FOLLOWING) as world:
            served = Served(world)
            while f"{sizes.hosts}</td>" not in served.session().get(f"{world.page}/", timeout=120).text:
                time.sleep(0.2)
            await_statistics(world.config)
            found.append({"": title, **_first_views(served), **in_a_browser(served), **_memory(served)})
            found[-1] |= _viewers(served)
    rows = [
        [name, *(column[name] for column in found), _ratio(*(column[name] for column in found))]
        for name in found[0]
    ]
    print(table(rows[1:], [*rows[0][:-1], "ratio"]))


def _ratio(small: str, large: str) -> str:
    """Of the first numbers that stand there."""
    numbers = [
        float(each.split(" ")[0].strip(",") or 0) if each[:1].isdigit() else 0.0 for each in (small, large)
    ]
    return f"{numbers[1] / numbers[0]:.1f}" if all(numbers) else ""


def _first_views(served: Served) -> dict[str, str]:
    """Each view for the first time of a state, and again: processor time of the page, and by the clock."""
    asking, rows = served.session(), {}
    for view in VIEWS:
        costs = []
        for _ in range(2):
            began, busy = time.perf_counter(), processor_seconds(served.process)
            answer = asking.get(served.path(view), timeout=120)
            costs.append((processor_seconds(served.process) - busy, time.perf_counter() - began))
            assert answer.status_code == 200, answer.text
        size = len(answer.content) / 1024
        first, again = ("{:.0f} ({:.0f})".format(*(each * 1e3 for each in cost)) for cost in costs)
        rows[f"{view}: first, again; KiB"] = f"{first}, {again}; {size:.0f}"
    return {"ms of processor time (by the clock)": "", **rows}


def _memory(served: Served) -> dict[str, str]:
    """Of the page, at rest, and with the process that plans."""
    rest = _resident(served.process)
    with _watching(served.process) as most:
        # A plan is given up after some time, which is not enough on a machine that has much else to do.
        statuses = [served.session().get(served.path("/plan/{cluster}/now"), timeout=600).status_code]
        while statuses[-1] != 200 and len(statuses) < TRIES:
            statuses.append(served.session().get(served.path("/plan/{cluster}/now"), timeout=600).status_code)
    return {
        "plans that were made, of those that were asked for": f"{statuses.count(200)} of {len(statuses)}",
        "resident, MiB": f"{rest / 2**20:.0f}",
        "with all its processes while it plans, at most, MiB": f"{most[0] / 2**20:.0f}",
    }


@contextmanager
def _watching(process: psutil.Process) -> Iterator[list[float]]:
    most = [0.0]

    def look() -> None:
        most[0] = max(most[0], _together(process))

    with repeating(look, every=0.05):
        yield most


def _viewers(served: Served) -> dict[str, str]:
    """Fifty people who look at all views, all the while."""
    sessions = [served.session() for _ in range(VIEWERS)]
    before, busy, until = (
        served.world.requests(),
        processor_seconds(served.process),
        time.monotonic() + VIEWING_SECONDS,
    )

    def look(asking: Any) -> int:
        count = 0
        while time.monotonic() < until:
            for view in ("/", "/map/{cluster}", "/cluster/{cluster}"):
                assert asking.get(served.path(view), timeout=120).status_code == 200
                count += 1
            time.sleep(1.0)
        return count

    with ThreadPoolExecutor(VIEWERS) as people:
        looks = sum(people.map(look, sessions))
    made = served.world.requests()
    asked = {user: made[user] - before[user] for user in (WORKERS_USER, ADMIN)}
    seconds = (processor_seconds(served.process) - busy) / looks
    return {
        f"{VIEWERS} viewers: views": str(looks),
        f"{VIEWERS} viewers: processor time a view, ms": f"{seconds * 1e3:.1f}",
        f"{VIEWERS} viewers: requests to the engine by the page, in their names": (
            f"{asked[WORKERS_USER]}, {asked[ADMIN]}"
        ),
    }


def _resident(process: psutil.Process) -> float:
    return float(process.memory_info().rss)


def _together(process: psutil.Process) -> float:
    """What a control group would count: shared pages once."""
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total
