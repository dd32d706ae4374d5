"""The plug-in in the portal: it shows what is selected, nothing removes it, and its user is the portal's."""

import json

import pytest
from playwright.sync_api import Browser, expect

from tests.configuration import PASSWORD
from tests.web.browser.conftest import violations_of
from tests.web.portal.serving import DB_1, LAYOUTS, MARKS, Portal, root_of, start_address, visit

pytestmark = MARKS

BAD_SELECTIONS = [
    *("[]", "[null]", "[undefined]", "[[null]]", "[[{}]]", "[[{ id: 7 }]]", "['text']", "[{ length: 3 }]"),
    "[[{ get id() { throw new Error('gone'); } }]]",
]
ALPHA, BETA = {"id": "h1", "name": "alpha"}, {"id": "h2", "name": "beta"}


def test_the_landing_page_is_not_taken(chromium: Browser, served: Portal) -> None:
    with visit(chromium, served) as one:
        one.enter("held")
        expect(one.page.locator("#tabs")).to_be_empty()
        assert one.page.evaluate("[...tabs.keys()].length") == 3
        one.page.wait_for_timeout(600)  # it looks for a place meanwhile, and must not add its own
        assert one.page.evaluate("defaultPlace") == "dashboard"
        one.page.evaluate("land()")
        expect(one.page.locator("#place")).to_have_text("dashboard")
        expect(one.page.locator("#menu >> text=Placement")).to_be_visible()
        expect(one.page.locator("#place")).to_have_text("dashboard")
        one.page.evaluate("reveal('placement')")
        expect(one.inner.locator("h1")).to_have_text("Clusters")


def test_this_portal_treats_plug_ins_as_the_engines_does(chromium: Browser, served: Portal) -> None:
    """What is tested against it is worth something only if a plug-in without care is punished."""
    with visit(chromium, served) as one:
        one.page.goto(start_address(served, "apache", "held", "naive"))
        one.page.wait_for_function("plugins.get('naive').state === 'IN_USE'")
        one.page.evaluate("land()")
        expect(one.page.locator("#place")).to_have_text("naive")
        one.select("Host", [ALPHA, BETA])
        one.select("Host", [ALPHA, BETA], as_arguments=True)
        one.page.evaluate("postMessage('from another', '*')")
        one.page.wait_for_timeout(100)
        heard = json.loads(one.page.evaluate("JSON.stringify(heard)"))
        assert [words[0] for words in heard] == ["UserLogin", "HostSelectionChange", "HostSelectionChange"]
        assert (heard[1][1:], heard[2][1:]) == ([[ALPHA, BETA]], [ALPHA, BETA])
        one.select("VirtualMachine", [DB_1])
        assert one.page.evaluate("plugins.get('naive').state") == "FAILED"
        assert one.page.locator("iframe[title=naive]").count() == 0


def test_nothing_removes_the_plug_in(chromium: Browser, served: Portal) -> None:
    with visit(chromium, served) as one:
        one.enter()
        for given in BAD_SELECTIONS:
            one.page.evaluate(
                f"for (const kind of Object.keys(TYPES)) invokeNow(`${{kind}}SelectionChange`, {given})"
            )
            enabled = one.page.evaluate(f"buttons.map((one) => one.callbacks.isEnabled(...{given}))")
            assert enabled == [False] * 3
            one.page.evaluate(f"buttons.forEach((one) => one.callbacks.onClick(...{given}))")
        # Calls of the portal that fail.
        one.page.evaluate("() => { window.kept = ui.setPlaceContentUrl; }")
        one.page.evaluate("() => { ui.setPlaceContentUrl = () => { throw new Error('no such place'); }; }")
        one.select("VirtualMachine", [DB_1])
        one.page.evaluate("() => { ui.setPlaceContentUrl = kept; }")
        assert one.state() == "IN_USE"
        one.reveal("vms", "db-1")
        expect(one.inner.locator("h1")).to_have_text("VM db-1")
        assert one.complaints == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_messages_of_others_are_ignored(chromium: Browser, served: Portal, layout: str) -> None:
    with visit(chromium, served, layout) as one:
        one.enter()
        one.reveal("vms", "db-1")
        expect(one.inner.locator("h1")).to_have_text("VM db-1")
        given = one.page.evaluate("tokensGiven")
        # The tab gives the token to nobody else: the portal's window is not the frame that it shows.
        one.page.evaluate("frames[frames.length - 1].postMessage({ placement: 'token wanted' }, '*')")
        # The page takes none from elsewhere: neither from another window, nor from another origin.
        token = served.token()
        one.page.context.clear_cookies()
        one.page.evaluate(
            """(address) => {
                for (const name of ["stranger", "waiting"]) {
                    const made = document.createElement("iframe");
                    made.name = name;
                    made.src = name === "waiting" ? address : "about:blank";
                    document.body.append(made);
                }
            }""",
            f"{root_of(served, layout)}/portal?next=/ovirt-placement/vm/a",
        )
        waiting, stranger = (
            one.page.locator(f"[name={name}]").element_handle().content_frame()
            for name in ("waiting", "stranger")
        )
        assert waiting is not None
        assert stranger is not None
        waiting.wait_for_selector("#hand-over")
        waiting.wait_for_load_state("load")
        before = one.log_ins
        message = {"placement": "token", "token": token}
        stranger.evaluate("(message) => top.frames.waiting.postMessage(message, '*')", message)
        waiting.evaluate("(message) => postMessage(message, '*')", message)
        one.page.evaluate("frames.waiting.postMessage({ placement: 'other' }, '*')")
        one.page.wait_for_timeout(300)
        assert (one.log_ins, one.page.evaluate("tokensGiven")) == (before, given)
        one.page.evaluate("(message) => frames.waiting.postMessage(message, '*')", message)
        expect(one.page.frame_locator("[name=waiting]").locator("h1")).to_have_text("VM db-1")
        assert one.log_ins == before + 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_session_is_that_of_the_portals_user(chromium: Browser, served: Portal, layout: str) -> None:
    with visit(chromium, served, layout) as one:
        root = root_of(served, layout)
        one.page.goto(f"{root}/")
        one.page.fill("#name", "reader@internal")
        one.page.fill("#password", PASSWORD)
        one.page.click("main button")
        expect(one.page.locator(".who")).to_contain_text("reader")
        one.enter()
        one.reveal("vms", "db-1")
        expect(one.inner.locator("h1")).to_have_text("VM db-1")
        one.page.goto(f"{root}/")
        expect(one.page.locator(".who")).to_contain_text("admin")
        # A session that is over begins again by itself, on the way to the next view.
        one.enter()
        one.reveal("vms", "db-1")
        expect(one.inner.locator("h1")).to_have_text("VM db-1")
        one.page.context.clear_cookies()
        before = one.log_ins
        one.inner.locator("main >> text=c1").first.click()
        expect(one.inner.locator("h1")).to_have_text("Cluster c1")
        assert one.log_ins == before + 1


def test_who_is_refused_reads_why(chromium: Browser, served: Portal) -> None:
    with visit(chromium, served) as one:
        served.user = "user@internal"
        one.enter()
        one.reveal("vms", "db-1")
        expect(one.inner.locator("#hand-over")).to_contain_text("for people with an admin role")


def test_a_browser_that_keeps_no_cookie_reads_so(chromium: Browser, served: Portal) -> None:
    """It would be led in a circle."""
    with visit(chromium, served) as one:
        one.page.route(
            "**/log-in/token", lambda route: route.fulfill(status=303, headers={"Location": "/nothing"})
        )
        one.enter()
        one.reveal("vms", "db-1")
        expect(one.inner.locator("[role=alert]")).to_contain_text("sends no cookie of the page")
        assert one.log_ins == 1


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
                assert violations_of(frame, axe) == []
        assert (one.complaints, one.strangers, one.state()) == ([], [], "IN_USE")


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
        assert (one.complaints, one.strangers) == ([], [])


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
        assert (one.state(), one.complaints) == ("IN_USE", [])


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
