"""What a browser sees of the page: a map until it is drawn, an update until its pixels, frames."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import requests
from playwright.sync_api import Page, sync_playwright

from ovirt_placement import inventory
from ovirt_placement.config import Config
from tests.browsers import FLAGS
from tests.configuration import PASSWORD
from tests.repeating import repeating

from .world import World, processor_seconds

ADMIN = "admin@internal"
#: How often the inventory looks for events: an update takes what the page takes, and no pause of its source.
FOLLOWING = "interval_seconds = 0.05\n"
UPDATES = 5
MOVES = 100
#: Notes when frames are drawn, from now on.
_NOTE_FRAMES = """() => {
    window.frames_at = [];
    const note = (now) => { window.frames_at.push(now); requestAnimationFrame(note); };
    requestAnimationFrame(note);
}"""
_FRAMES = "() => window.frames_at.slice(1).map((each, at) => each - window.frames_at[at])"


class Served:
    """A page, and a log-in to it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.process = world.process("ovirt-placement-web")

    def session(self) -> requests.Session:
        asking, root = requests.Session(), self.world.page
        headers = {"Origin": root.partition("/ovirt-placement")[0]}
        form = {"name": ADMIN, "password": PASSWORD}
        answer = asking.post(f"{root}/log-in", form, headers=headers, allow_redirects=False, timeout=120)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        asking.headers.update({"Cookie": cookie})  # it is Secure, and this is plain HTTP on loopback
        return asking

    def path(self, view: str) -> str:
        state = self.world.snapshot
        vm = next(vm for vm in state.vms if vm.host is not None)
        return self.world.page + view.format(cluster=state.clusters[0].id, vm=vm.id)


class Update(NamedTuple):
    """How long it took until an update was on the canvas, in seconds."""

    since_event: float
    since_publication: float


def in_a_browser(served: Served) -> dict[str, str]:
    chromium = shutil.which("chromium")
    assert chromium, "apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(f"{served.world.page}/")
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
        "a migration until it is drawn, ms": _ms(one.since_event for one in seen),
        "of that, once the inventory has published it, ms": _ms(one.since_publication for one in seen),
        "processor time of the page an update, ms": f"{busy / UPDATES * 1e3:.0f}",
        "frames while panning, p50 and p95, ms": f"{middle:.0f} {most:.0f}",
    }


def _ms(seconds: Iterable[float]) -> str:
    return " ".join(f"{each * 1e3:.0f}" for each in seconds)


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


def _updates(served: Served, page: Page) -> tuple[list[Update], float]:
    """Migrations that begin, one by one, and the processor time of the page meanwhile, in seconds."""
    running = [
        vm
        for vm in served.world.snapshot.vms
        if vm.host is not None and vm.migratable and not vm.hosted_engine
    ]
    hosts = [host.id for host in served.world.snapshot.hosts]
    grouped = {vm for group in served.world.snapshot.affinity_groups for vm in group.vms}
    movable = [vm for vm in running if vm.id not in grouped][:UPDATES]
    seen, before = [], processor_seconds(served.process)
    with _publications(served.world.config) as published:
        for vm in movable:
            drawn = page.get_attribute("#map", "data-drawn")
            _migrate(served, vm.id, next(host for host in hosts if host != vm.host))
            began = time.perf_counter()
            page.wait_for_function(
                "(drawn) => document.getElementById('map').dataset.drawn !== drawn", arg=drawn
            )
            ended = time.perf_counter()
            known = next((moment for moment in published if moment > began), began)
            seen.append(Update(ended - began, ended - min(known, ended)))
            _wait_until_settled(page)
    return seen, processor_seconds(served.process) - before


def _wait_until_settled(page: Page) -> None:
    """Until what follows of a migration is drawn, too: the next one shall not be taken for that."""
    drawn = None
    while drawn != (drawn := page.get_attribute("#map", "data-drawn")):
        time.sleep(2.0)


def _migrate(served: Served, vm: str, host: str) -> None:
    answer = requests.post(
        f"{served.world.engine}/ovirt-engine/api/vms/{vm}/migrate",
        f'<action><host id="{host}"/></action>',
        headers={"Content-Type": "application/xml"},
        auth=(ADMIN, PASSWORD),
        timeout=120,
    )
    assert answer.ok, answer.text


@contextmanager
def _publications(config: Config) -> Iterator[list[float]]:
    """When the inventory publishes something new, until this ends."""
    moments: list[float] = []

    def note() -> None:
        inventory.snapshot(config=config, max_age=float("inf"))
        if inventory.wait_for_change(1.0, config=config):
            moments.append(time.perf_counter())

    with repeating(note, every=0.0):
        yield moments
