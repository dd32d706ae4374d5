"""What the page costs: first views, an update until it is seen, frames, memory, and 50 viewers."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import requests
from demo.processes import Processes, address
from playwright.sync_api import Page, sync_playwright

from ovirt_placement.model import Snapshot, state_file
from ovirt_service.tables import table
from ovirt_simulator.generate import Sizes, generate
from tests.browsers import FLAGS
from tests.configuration import PASSWORD, write_configuration

from .placement_world import INVENTORY_USER, SIZES, WORKERS_USER
from .placement_world import requests as requests_made

SMALL = Sizes(hosts=3, vms=30, groups=3)
VIEWERS = 50
VIEWING_SECONDS = 20.0
UPDATES = 5
TRIES = 3
#: How often the inventory looks for events: an update takes what the page takes, and no pause of its source.
FOLLOWING = "interval_seconds = 0.1\n"
MOVES = 100
ADMIN = "admin@internal"
#: What a person sees first of a cluster, then of a VM.
VIEWS = (
    "/",
    "/cluster/{cluster}",
    "/map/{cluster}",
    "/api/v1/clusters/{cluster}/map",
    "/ha/{cluster}",
    "/vm/{vm}",
)

#: Notes when frames are drawn, from now on.
_NOTE_FRAMES = """() => {
    window.frames_at = [];
    const note = (now) => { window.frames_at.push(now); requestAnimationFrame(note); };
    requestAnimationFrame(note);
}"""
_FRAMES = "() => window.frames_at.slice(1).map((each, at) => each - window.frames_at[at])"


class Served(NamedTuple):
    """A page that is warm, and where its engine is."""

    root: str
    engine: str
    process: psutil.Process
    state: Snapshot

    def session(self) -> requests.Session:
        asking = requests.Session()
        origin = self.root.partition("/ovirt-placement")[0]
        form = {"name": ADMIN, "password": PASSWORD}
        answer = asking.post(
            f"{self.root}/log-in", form, headers={"Origin": origin}, allow_redirects=False, timeout=120
        )
        cookie = answer.headers["set-cookie"].partition(";")[0]
        asking.headers.update({"Cookie": cookie})  # it is Secure, and this is plain HTTP on loopback
        return asking

    def path(self, view: str) -> str:
        running = next(vm for vm in self.state.vms if vm.host is not None)
        return self.root + view.format(cluster=self.state.clusters[0].id, vm=running.id)


def main() -> None:
    columns = [("3 hosts, 30 VMs", SMALL), (f"{SIZES.hosts} hosts, {SIZES.vms:,} VMs", SIZES)]
    found = []
    for title, sizes in columns:
        with _served(sizes) as served:
            found.append({"": title, **_first_views(served), **_in_a_browser(served), **_memory(served)})
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


@contextmanager
def _served(sizes: Sizes) -> Iterator[Served]:
    state = generate(sizes, seed=1)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        (folder / "state.json").write_bytes(state_file.dumps(state))
        with Processes(folder) as processes:
            start = f"ovirt-simulator run --listen 127.0.0.1:0 --state {folder}/state.json"
            engine = address(processes.start("ovirt-simulator", start.split()))
            for user, web in ((INVENTORY_USER, ""), (WORKERS_USER, '[web]\nlisten = "127.0.0.1:0"\n')):
                write_configuration(
                    folder,
                    f"{engine}/ovirt-engine/api",
                    name=f"{user}.toml",
                    user=user,
                    inventory=FOLLOWING,
                    more=web,
                )
            inventory = f"ovirt-placement inventory run --config {folder}/{INVENTORY_USER}.toml"
            processes.start("inventory", inventory.split())
            page = f"ovirt-placement-web run --config {folder}/{WORKERS_USER}.toml"
            root = address(processes.start("page", page.split())).rstrip("/")
            found = next(
                each
                for each in psutil.Process().children()
                if "ovirt-placement-web" in " ".join(each.cmdline())
            )
            served = Served(root, engine, found, state)
            asking = served.session()
            while f"{sizes.hosts}</td>" not in asking.get(f"{root}/", timeout=120).text:
                time.sleep(0.2)
            yield served


def _first_views(served: Served) -> dict[str, str]:
    """Each view for the first time of a state, and again: processor time of the page, and by the clock."""
    asking, rows = served.session(), {}
    for view in VIEWS:
        costs = []
        for _ in range(2):
            began, busy = time.perf_counter(), _busy(served.process)
            answer = asking.get(served.path(view), timeout=120)
            costs.append((_busy(served.process) - busy, time.perf_counter() - began))
            assert answer.status_code == 200, answer.text
        size = len(answer.content) / 1024
        first, again = ("{:.0f} ({:.0f})".format(*(each * 1e3 for each in cost)) for cost in costs)
        rows[f"{view}: first, again; KiB"] = f"{first}, {again}; {size:.0f}"
    return {"ms of processor time (by the clock)": "", **rows}


def _in_a_browser(served: Served) -> dict[str, str]:
    chromium = shutil.which("chromium")
    assert chromium, "apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(f"{served.root}/")
        page.fill("#name", ADMIN)
        page.fill("#password", PASSWORD)
        page.click("main button")
        page.wait_for_selector("header nav")
        began = time.perf_counter()
        page.goto(served.path("/map/{cluster}"))
        page.wait_for_selector("#map[data-drawn]")
        drawn = time.perf_counter() - began
        seen, busy = _updates(served, page)
        frames = _panned(page)
        browser.close()
    middle, most = frames[len(frames) // 2], frames[len(frames) * 95 // 100]
    return {
        "a map until it is drawn, ms": f"{drawn * 1e3:.0f}",
        "a migration until it is drawn, ms": " ".join(f"{each * 1e3:.0f}" for each in seen),
        "processor time of the page an update, ms": f"{busy / UPDATES * 1e3:.0f}",
        "frames while panning, p50 and p95, ms": f"{middle:.0f} {most:.0f}",
    }


def _panned(page: Page) -> list[float]:
    """How long each frame took while somebody moved the map, in order of length."""
    box = page.locator("#map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for _ in range(3):
        page.click("button:has-text('+')")
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(_NOTE_FRAMES)
    page.mouse.move(x - 300, y - 150, steps=MOVES)
    page.mouse.move(x + 300, y + 150, steps=MOVES)
    found: list[float] = page.evaluate(_FRAMES)
    page.mouse.up()
    return sorted(found)


def _updates(served: Served, page: Page) -> tuple[list[float], float]:
    """From the engine's event until another state is on the canvas."""
    running = [
        vm for vm in served.state.vms if vm.host is not None and vm.migratable and not vm.hosted_engine
    ]
    hosts = [host.id for host in served.state.hosts]
    grouped = {vm for group in served.state.affinity_groups for vm in group.vms}
    movable = [vm for vm in running if vm.id not in grouped][:UPDATES]
    seen, busy = [], _busy(served.process)
    for vm in movable:
        before = page.get_attribute("#map", "data-drawn")
        target = next(host for host in hosts if host != vm.host)
        body = f'<action><host id="{target}"/></action>'
        answer = requests.post(
            f"{served.engine}/ovirt-engine/api/vms/{vm.id}/migrate",
            body,
            headers={"Content-Type": "application/xml"},
            auth=(ADMIN, PASSWORD),
            timeout=120,
        )
        assert answer.ok, answer.text
        began = time.perf_counter()
        page.wait_for_function(
            "(before) => document.getElementById('map').dataset.drawn !== before", arg=before
        )
        seen.append(time.perf_counter() - began)
        time.sleep(2.0)  # what follows of it is over
    return seen, _busy(served.process) - busy


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
    most, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            most[0] = max(most[0], _together(process))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def _viewers(served: Served) -> dict[str, str]:
    """Fifty people who look at all views, all the while."""
    sessions = [served.session() for _ in range(VIEWERS)]
    before, busy, until = (
        requests_made(served.engine),
        _busy(served.process),
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
    made = requests_made(served.engine)
    asked = {user: made.get(user, 0) - before.get(user, 0) for user in (WORKERS_USER, ADMIN)}
    seconds = (_busy(served.process) - busy) / looks
    return {
        f"{VIEWERS} viewers: views": str(looks),
        f"{VIEWERS} viewers: processor time a view, ms": f"{seconds * 1e3:.1f}",
        f"{VIEWERS} viewers: requests to the engine by the page, in their names": (
            f"{asked[WORKERS_USER]}, {asked[ADMIN]}"
        ),
    }


def _busy(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


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
