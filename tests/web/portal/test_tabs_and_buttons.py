"""Tabs and buttons of the plug-in show what is selected in the portal."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.web.portal.serving import Portal
from tests.web.portal.visiting import DB_1, LAYOUTS, MARKS, visit

pytestmark = MARKS


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tabs_show_what_is_selected(chromium: Browser, served: Portal, axe: str, layout: str) -> None:
    with visit(chromium, served, layout) as one:
        one.enter()
        one.reveal("hosts", "alpha")
        expect(one.inner.locator("h1")).to_have_text("Host alpha")
        one.reveal("clusters", "c1")
        expect(one.inner.locator("h1")).to_have_text("Cluster c1")
        one.reveal("vms", "db-1")
        expect(one.inner.locator("h1")).to_have_text("VM db-1")
        # Another selection does not load the tab again.
        tab = next(frame for frame in one.page.frames if "tab.html" in frame.url)
        tab.evaluate("window.marked = true")
        for as_arguments, vm, name in ((False, "b", "db-2"), (True, "big", "too-large")):
            one.select("VirtualMachine", [{"id": vm, "name": name}], as_arguments=as_arguments)
            expect(one.inner.locator("h1")).to_have_text(f"VM {name}")
        assert tab.evaluate("window.marked")
        assert one.log_ins == 1
        # The page's own name and log-out are the portal's business; the rest of the page is a click away.
        expect(one.inner.locator("header .brand, header .out")).to_have_count(0)
        one.page.click("#menu >> text=Placement")
        expect(one.inner.locator("main")).to_contain_text("c1")
        one.inner.locator("nav >> text=History").click()
        expect(one.inner.locator("h1")).to_have_text("History")
        for frame in one.page.frames[1:]:
            if frame.url.endswith(("tab.html#clusters", "/history")):
                assert _violations(frame, axe) == []
        assert one.complaints == []
        assert one.strangers == []
        assert one.state() == "IN_USE"


def test_buttons_show_what_is_selected(chromium: Browser, served: Portal) -> None:
    with visit(chromium, served) as one:
        one.enter()
        one.page.click("#menu >> text=vms")
        why, room = one.page.locator("#actions >> text=Why"), one.page.locator("#actions >> text=Make Room")
        expect(why).to_be_disabled()
        one.page.check("#rows [aria-label='db-1']")
        expect(room).to_be_disabled()
        why.click()
        expect(one.in_dialog.locator("h1")).to_have_text("VM db-1")
        one.page.click("#dialog >> text=Close")
        expect(one.page.locator("#dialog iframe")).to_have_count(0)
        one.page.check("#rows [aria-label='db-2']")
        expect(why).to_be_disabled()
        one.page.uncheck("#rows [aria-label='db-1']")
        one.page.uncheck("#rows [aria-label='db-2']")
        one.page.check("#rows [aria-label='too-large']")
        room.click()
        expect(one.in_dialog.locator("h1")).to_have_text("Room for VM too-large")
        one.page.click("#menu >> text=hosts")
        fail = one.page.locator("#actions >> text=What If It Fails")
        expect(fail).to_be_disabled()
        for count, name in enumerate(("alpha", "beta"), 1):
            one.page.check(f"#rows [aria-label='{name}']")
            fail.click()
            hosts = "1 host" if count == 1 else "2 hosts"
            expect(one.in_dialog.locator("#outcome")).to_contain_text(f"If {hosts} failed")
        assert one.complaints == []
        assert one.strangers == []


def test_without_a_selection_a_tab_offers_its_search(chromium: Browser, served: Portal) -> None:
    """After a reload the portal selects before the plug-in listens."""
    with visit(chromium, served) as one:
        one.enter()
        one.reveal("vms", "db-1")
        one.page.goto("about:blank")
        one.enter(place="vms-general;name=db-1")
        one.page.click("#tabs >> text=Placement")
        expect(one.inner.locator("main")).to_contain_text("Write a part of the name")
        one.inner.locator("#find").fill("db-2")
        one.inner.locator("#find").press("Enter")
        one.inner.locator("main a >> text=db-2").click()
        expect(one.inner.locator("h1")).to_have_text("VM db-2")
        # Several at once are no one thing to show.
        one.select("VirtualMachine", [DB_1])
        expect(one.inner.locator("h1")).to_have_text("VM db-1")
        one.select("VirtualMachine", [DB_1, {"id": "b", "name": "db-2"}])
        expect(one.inner.locator("main")).to_contain_text("Write a part of the name")
        assert one.complaints == []


def test_a_wrong_configuration_is_said_in_the_tab(chromium: Browser, served: Portal) -> None:
    with visit(chromium, served) as one:
        one.enter()
        one.page.evaluate("plugins.get('ovirt-placement').data.config.page = 'javascript:alert(1)'")
        one.reveal("vms", "db-1")
        expect(one.outer.locator("#said")).to_contain_text("is no address of a page")
        assert one.state() == "IN_USE"
        assert one.complaints == []


def test_a_migration_is_seen_in_the_tab(chromium: Browser, served: Portal) -> None:
    """The event stream comes through the engine's Apache."""
    with visit(chromium, served) as one:
        one.enter()
        one.reveal("vms", "db-2")
        expect(one.inner.locator("main")).to_contain_text("up on alpha")
        served.engine.vms.migrate("b", host_id="h2")
        served.engine.advance(600)
        expect(one.inner.locator("main")).to_contain_text("up on beta")
        assert one.complaints == []


def _violations(frame: Any, axe: str) -> list[Any]:
    frame.evaluate(f"() => {{ {axe} }}")
    found: list[Any] = frame.evaluate(
        "async () => (await axe.run()).violations.map((one) => [one.id, one.nodes.map((node) => node.html)])"
    )
    return found
