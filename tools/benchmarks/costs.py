"""What the inventory costs the engine and its machine, at rest and under churn; and the page with viewers."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import requests

from ovirt_placement import config
from ovirt_placement.inventory import client as inventory
from ovirt_service.text import table
from ovirt_simulator.generate import Sizes
from tests.configuration import PASSWORD
from tests.repeating import repeating
from tools.stage import (
    ADMIN,
    EVENTS_PER_SECOND,
    INVENTORY_USER,
    SIZES,
    WORKERS_USER,
    Stage,
    processor_seconds,
    quantiles,
    running,
)

READING_SECONDS = 20.0
#: Long enough for a burst to be over and for each larger reading to be due again.
REST_SECONDS = 60.0
SETTLING_SECONDS = 5.0
READINGS_PER_SECOND = 10


def watch_inventory() -> None:
    with running() as stage:
        stage.await_statistics()
        rows = [_watched("at rest", stage, lambda: time.sleep(REST_SECONDS))]
        decide = partial(_decide, stage)
        rows.append(_watched(f"{READINGS_PER_SECOND} decisions a second", stage, decide))
        with stage.churning():
            time.sleep(SETTLING_SECONDS)
            rows.append(_watched(f"and {EVENTS_PER_SECOND} events a second", stage, decide))
    headers, *lines = ([name, *(window.get(name, "") for window in rows)] for name in rows[-1])
    print(f"the service, and a reader\n{table(lines, headers)}")


def _watched(title: str, stage: Stage, do: Callable[[], dict[str, str] | None]) -> dict[str, str]:
    """Watch the service while something is done."""
    service = stage.process("inventory run")
    before, busy, began = stage.requests(), processor_seconds(service), time.monotonic()
    found = do()
    seconds = time.monotonic() - began
    made = stage.requests()[INVENTORY_USER] - before[INVENTORY_USER]
    return {
        "": title,
        "requests of the service a minute": f"{made / seconds * 60:.0f}",
        **(found or {}),
        "the service: processor share": f"{(processor_seconds(service) - busy) / seconds:.0%}",
        "the service: resident, MiB": f"{service.memory_info().rss / 2**20:.0f}",
    }


def _decide(stage: Stage) -> dict[str, str]:
    """Let a reader ask for snapshots as decisions do."""
    before = stage.requests()[WORKERS_USER]
    file = str(stage.folder / f"{WORKERS_USER}.toml")
    command = [sys.executable, "-m", "tools.benchmarks.costs", file]
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
    while (elapsed := time.monotonic() - began) < READING_SECONDS:
        started = time.perf_counter()
        published = inventory.known(config=settings).publication
        times.append(time.perf_counter() - started)
        if published is not None:
            versions.add(published.version)
            ages.append(published.age_seconds * 1e3)
        time.sleep(max(0.0, len(times) / READINGS_PER_SECOND - elapsed))
    found = {
        "versions a second": f"{(len(versions) - 1) / READING_SECONDS:.1f}",
        "age of the snapshot, p50 and longest, ms": f"{sorted(ages)[len(ages) // 2]:.0f}  {max(ages):.0f}",
        "a decision's snapshot, p50 and p99, ms": "{:.2f}  {:.2f}".format(*quantiles(times)),
        "a reader: resident, MiB": f"{psutil.Process().memory_info().rss / 2**20:.0f}",
    }
    print(json.dumps(found))


# -- the page
SMALL = Sizes(hosts=3, vms=30, groups=3)
VIEWERS = 50
VIEWING_SECONDS = 20.0
TRIES = 3
#: What a person sees first of a cluster, then of a VM.
VIEWS = (
    *("/", "/cluster/{cluster}", "/map/{cluster}"),
    *("/api/v1/clusters/{cluster}/map", "/ha/{cluster}", "/vm/{vm}"),
)
PLAN = "/plan/{cluster}/now"


class Served:
    """A page, and log-ins to it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.process = stage.process("ovirt-placement-web")

    def session(self) -> requests.Session:
        asking, root = requests.Session(), self.stage.page
        headers = {"Origin": root.partition("/ovirt-placement")[0]}
        form = {"name": ADMIN, "password": PASSWORD}
        answer = asking.post(f"{root}/log-in", form, headers=headers, allow_redirects=False, timeout=120)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        asking.headers.update({"Cookie": cookie})  # it is Secure, and this is plain HTTP on loopback
        return asking

    def get(self, asking: requests.Session, view: str, timeout: float = 120) -> requests.Response:
        state = self.stage.snapshot
        vm = next(vm for vm in state.vms if vm.host is not None)
        path = view.format(cluster=state.clusters[0].id, vm=vm.id)
        return asking.get(self.stage.page + path, timeout=timeout)


def watch_page() -> None:
    found = []
    for sizes in (SMALL, SIZES):
        with running(sizes, page=True) as stage:
            served = Served(stage)
            while f"{sizes.hosts}</td>" not in served.get(served.session(), "/").text:
                time.sleep(0.2)
            stage.await_statistics()
            title = {"": f"{sizes.hosts} hosts, {sizes.vms:,} VMs"}
            found.append({**title, **_first_views(served), **_memory(served), **_viewers(served)})
    headers, *rows = ([name, *(column[name] for column in found)] for name in found[0])
    print(table(rows, headers))


def _first_views(served: Served) -> dict[str, str]:
    """Each view for the first time of a state, and again: processor time of the page, and by the clock."""
    asking, rows = served.session(), {}
    for view in VIEWS:
        costs = []
        for _ in range(2):
            began, busy = time.perf_counter(), processor_seconds(served.process)
            answer = served.get(asking, view)
            costs.append((processor_seconds(served.process) - busy, time.perf_counter() - began))
            assert answer.status_code == 200, answer.text
        size = len(answer.content) / 1024
        first, again = ("{:.0f} ({:.0f})".format(*(each * 1e3 for each in cost)) for cost in costs)
        rows[f"{view}: first, again; KiB"] = f"{first}, {again}; {size:.0f}"
    return {"ms of processor time (by the clock)": "", **rows}


def _memory(served: Served) -> dict[str, str]:
    """Of the page, at rest, and with the process that plans."""
    rest, asking = float(served.process.memory_info().rss), served.session()
    with _watching_memory(served.process) as most:
        # A plan is given up after some time, which is not enough on a machine that has much else to do.
        statuses: list[int] = []
        while 200 not in statuses and len(statuses) < TRIES:
            statuses.append(served.get(asking, PLAN, timeout=600).status_code)
    return {
        "plans that were made, of those that were asked for": f"{statuses.count(200)} of {len(statuses)}",
        "resident, MiB": f"{rest / 2**20:.0f}",
        "with all its processes while it plans, at most, MiB": f"{most[0] / 2**20:.0f}",
    }


@contextmanager
def _watching_memory(process: psutil.Process) -> Iterator[list[float]]:
    """The most that it takes with its children, as a control group would count: shared pages once."""
    most = [0.0]

    def look() -> None:
        total = 0.0
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += each.memory_full_info().pss
        most[0] = max(most[0], total)

    with repeating(look, every=0.05):
        yield most


def _viewers(served: Served) -> dict[str, str]:
    """Fifty people who look at all views, all the while."""
    sessions = [served.session() for _ in range(VIEWERS)]
    before, busy = served.stage.requests(), processor_seconds(served.process)
    until = time.monotonic() + VIEWING_SECONDS

    def look(asking: requests.Session) -> int:
        count = 0
        while time.monotonic() < until:
            for view in VIEWS[:3]:
                assert served.get(asking, view).status_code == 200
                count += 1
            time.sleep(1.0)
        return count

    with ThreadPoolExecutor(VIEWERS) as people:
        looks = sum(people.map(look, sessions))
    made = served.stage.requests()
    asked = [str(made[user] - before[user]) for user in (WORKERS_USER, ADMIN)]
    seconds = (processor_seconds(served.process) - busy) / looks
    return {
        f"{VIEWERS} viewers: views": str(looks),
        f"{VIEWERS} viewers: processor time a view, ms": f"{seconds * 1e3:.1f}",
        f"{VIEWERS} viewers: requests to the engine by the page, in their names": ", ".join(asked),
    }


if __name__ == "__main__":
    read_steadily(Path(sys.argv[1]))
