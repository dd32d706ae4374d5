"""The map and the view of failures as a person uses them: by mouse, by keyboard, small and large."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ovirt_placement.model import Snapshot
from ovirt_simulator.generate import Sizes, generate
from tests.web.browser.conftest import Tab, tab
from tests.web.running import Page, paged

pytestmark = pytest.mark.system

#: Whether anything is drawn: colours other than the ground.
_COLOURS = """() => {
    const canvas = document.getElementById("map");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
}"""

#: A digest of all pixels, once what is due is drawn.
_PICTURE = """async () => {
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const canvas = document.getElementById("map");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const digest = await crypto.subtle.digest("SHA-256", data);
    return Array.from(new Uint8Array(digest), (byte) => byte.toString(16)).join();
}"""


def test_a_map_is_found_through_by_keyboard(chromium: Browser, served: Page) -> None:
    with tab(chromium, served) as one:
        _open(one, "c1")
        expect(one.page.locator("#count")).to_have_text("2 hosts, 2 VMs, 2 misplaced, 0 migrating")
        assert one.page.evaluate(_COLOURS) > 4
        for colour in ("Groups", "HA", "Load", "Maintenance", "Violations"):
            one.page.click(f"#tools >> text={colour}")
        expect(one.page.locator("#legend")).to_contain_text("violates a hard rule")
        one.page.focus("#map")
        one.page.keyboard.press("ArrowRight")
        expect(one.page.locator("#said")).to_have_text("Host alpha, up, 2 VMs, 2 misplaced")
        one.page.keyboard.press("Enter")
        expect(one.page.locator("#chosen")).to_contain_text("1 CPU, in databases")
        one.page.keyboard.press("ArrowRight")
        expect(one.page.locator("#said")).to_have_text("Host beta, up, 0 VMs")
        one.page.fill("#word", "db-2")
        expect(one.page.locator("#count")).to_contain_text("1 of 2 hosts")
        one.page.keyboard.press("Enter")
        expect(one.page.locator("#said")).to_contain_text("Host alpha")
        one.page.click("#chosen >> text=db-2")
        expect(one.page.locator("h1")).to_have_text("VM db-2")


def test_a_migration_moves_on_the_map(chromium: Browser, served: Page) -> None:
    with tab(chromium, served) as one:
        _open(one, "c1")
        served.engine.vms.migrate("b", host_id="h2")
        served.engine.advance(1)
        expect(one.page.locator("#count")).to_contain_text("1 migrating", timeout=20_000)
        served.engine.advance(600)
        expect(one.page.locator("#count")).to_contain_text("0 misplaced, 0 migrating", timeout=20_000)


def test_500_hosts_with_10000_vms_are_drawn(chromium: Browser, tmp_path: Path) -> None:
    state = generate(Sizes(clusters=1, hosts=500, vms=10_000, groups=500), seed=1)
    cluster = state.clusters[0]
    with paged(tmp_path, state, first=cluster.id) as page, tab(chromium, page) as one:
        _open(one, cluster.id)
        running = sum(vm.host is not None for vm in state.vms)
        expect(one.page.locator("#count")).to_contain_text(f"500 hosts, {running} VMs")
        assert one.page.evaluate(_COLOURS) > 8
        one.page.focus("#map")
        for key in ("+", "+", "End", "-", "0", "Home", "Enter"):
            one.page.keyboard.press(key)
        expect(one.page.locator("#said")).to_contain_text("Host host-001")
        one.see(f"/map/{cluster.id}/table?page=10")
        expect(one.page.locator("main")).to_contain_text("page 10 of 10")


@pytest.mark.parametrize("zoomed", ["", "+++", "+++++++"], ids=["whole", "near", "very near"])
def test_what_changes_looks_as_if_all_were_redrawn(chromium: Browser, tmp_path: Path, zoomed: str) -> None:
    """A migration leaves, is on its way and arrives; a VM stops, another starts; a host is chosen."""
    state = generate(Sizes(clusters=1, hosts=40, vms=600, groups=60), seed=1)
    cluster = state.clusters[0]
    with paged(tmp_path, state, first=cluster.id) as page, tab(chromium, page) as one:
        _open(one, cluster.id)
        one.page.focus("#map")
        for key in (*zoomed, "ArrowRight", "ArrowRight"):
            one.page.keyboard.press(key)
        first = one.page.evaluate(_PICTURE)
        asked = _asked_for(one)
        for change in _changes(page, state, at=1):
            before = one.page.get_attribute("#map", "data-drawn")
            change()
            page.engine.advance(2)
            expect(one.page.locator("#map")).not_to_have_attribute("data-drawn", str(before), timeout=20_000)
        page.engine.advance(20)  # by now it has counted the memory of all hosts
        cookie = page.session()
        page.until(lambda: one.page.get_attribute("#map", "data-drawn") == _last(page, cluster.id, cookie))
        drawn = one.page.evaluate(_PICTURE)
        assert drawn != first
        assert all("/changes?since=" in url for url in asked)
        assert asked
        one.page.emulate_media(color_scheme="dark")
        page.until(lambda: one.page.evaluate(_PICTURE) != drawn)
        one.page.emulate_media(color_scheme="light")
        page.until(lambda: one.page.evaluate(_PICTURE) == drawn)


def _asked_for(one: Tab) -> list[str]:
    """The addresses of maps that are asked for from now on."""
    found: list[str] = []
    one.page.on("request", lambda asked: found.append(asked.url) if "/map" in asked.url else None)
    return found


def _changes(page: Page, state: Snapshot, at: int) -> Iterator[Callable[[], object]]:
    """Of VMs on one host, by its place on the map, to its neighbours."""
    hosts = sorted(state.hosts, key=lambda host: (host.name, host.id))
    movable = [vm for vm in state.vms_of_host[hosts[at].id] if vm.migratable and not vm.hosted_engine]
    yield partial(page.engine.vms.migrate, movable[0].id, host_id=hosts[at - 1].id)
    yield partial(page.engine.vms.migrate, movable[1].id, host_id=hosts[at + 1].id)
    yield partial(page.engine.vms.migrate, movable[2].id, host_id=hosts[-1].id)
    yield partial(page.engine.vms.stop, movable[3].id)
    yield partial(page.engine.vms.start, movable[3].id)


def _last(page: Page, cluster: str, cookie: str) -> str | None:
    """The number of the map that shows the engine as it is and stays; None as long as there is none."""
    shown = json.loads(page.ask(f"/api/v1/clusters/{cluster}/map", cookie=cookie).text)
    state = page.engine.snapshot()
    vms = {(vm.id, vm.status, vm.host) for vm in state.vms if vm.host is not None}
    hosts = [host["id"] for host in shown["hosts"]]
    free = {host["id"]: host["free_mb"] for host in shown["hosts"]}
    drawn = {(vm["id"], vm.get("status", "up"), hosts[vm["host"]]) for vm in shown["vms"] if "host" in vm}
    current = drawn == vms and free == {host.id: host.free_mb for host in state.hosts}
    return str(shown["number"]) if current else None


def _open(one: Tab, cluster: str) -> None:
    one.log_in()
    one.see(f"/map/{cluster}")
    one.page.wait_for_selector("#map[data-drawn]")
