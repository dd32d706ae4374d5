"""Every view in a real browser: readable by all, in light and dark, wide and narrow, of now and of old."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.web.browser.conftest import tab, violations_of
from tests.web.conftest import STATE
from tests.web.running import HOSTILE, Page, paged

pytestmark = pytest.mark.system

VIEWS = [
    *("/", "/cluster/c1", "/cluster/c2", "/plan/c1", "/plan/c1/now", "/plan/c1/now?without=a", "/map/c1"),
    *("/map/c1/table", "/ha/c1", "/ha/c1?host=h1", "/ha/c1?host=h1&host=h2", "/vm/a", "/vm/big", "/vm/x"),
    *("/host/h1", "/host/h3", "/group/g1", "/group/g2", "/group/g1/edit", "/group/g2/edit"),
    *("/cluster/c1/new-group", "/cluster/c1/rule", "/history", "/keys"),
    *("/keys/set?level=node&on=h3&name=SSD", "/keys/hosts?cluster=c2&name=SSD", "/vm/x/keys", "/vm/x/then"),
    *("/vm/x/then?at=yesterday+02:13", "/maintenance/c2", "/maintenance/c1?host=h1&stop=db-1&return=all"),
    *("/health", "/vms", "/hosts?show=down", "/rules", "/cluster/c1/rules", "/cluster/c2/hosts"),
    *("/cluster/c1/history", "/search?q=db"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_each_view(chromium: Browser, served: Page, axe: str, scheme: str) -> None:
    with tab(chromium, served, scheme=scheme) as one:
        one.see("/log-in")
        found = {"/log-in": violations_of(one, axe)}
        one.log_in()
        for view in VIEWS:
            one.see(view)
            found[view] = violations_of(one, axe)
        assert {view: what for view, what in found.items() if what} == {}


def test_each_view_fits_into_320_pixels(chromium: Browser, served: Page) -> None:
    with tab(chromium, served, width=320) as one:
        one.log_in()
        for view in VIEWS:
            one.see(view)
            wide = one.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 320, view


def test_names_are_text(chromium: Browser, served: Page) -> None:
    with tab(chromium, served) as one:
        one.page.on("dialog", lambda dialog: pytest.fail(f"a name has run: {dialog.message}"))
        one.log_in()
        one.see("/vm/x")
        shown = " ".join(one.page.locator("h1").inner_text().split())
        assert shown == "VM " + HOSTILE.replace("\u202e", "\\u202e")
        assert one.page.locator("img").count() == 0


def test_an_outage_leaves_what_was_known_with_its_age(chromium: Browser, tmp_path: Path) -> None:
    with paged(tmp_path, STATE) as page, tab(chromium, page, complains=True) as one:
        one.log_in()
        one.see("/cluster/c1")
        page.server.close()
        expect(one.page.locator("#away")).to_contain_text("The engine does not answer", timeout=60_000)
        expect(one.page.locator("#away")).to_contain_text("ago")
        expect(one.page.locator("#known")).to_contain_text("old")
        expect(one.page.locator("main")).to_contain_text("databases")
        assert one.page.evaluate("document.body.classList.contains('stale')")
        expect(one.page.locator("main form")).to_have_count(
            0, timeout=20_000
        )  # nothing can be done meanwhile


def test_tabs_share_one_stream_and_learn_of_the_sessions_end(chromium: Browser, served: Page) -> None:
    with tab(chromium, served) as one:
        one.log_in()
        second = one.page.context.new_page()
        second.goto(one.page.url)
        expect(second.locator("#known")).to_have_text("Live")
        one.page.wait_for_timeout(500)
        assert sum(url.endswith("/events") for _, url in one.asked) == 1
        one.log_out()
        expect(one.page.locator("h1")).to_have_text("Log in")
        # Its stream ends with the tab that had it; the other one takes over, and is reported.
        expect(second.locator("#lost")).to_be_visible(timeout=60_000)
