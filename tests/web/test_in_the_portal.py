"""What the page answers to frames of the engine's portal, and what the files of its plug-in must not have."""

import json
import re
from typing import Any

from ovirt_simulator.core.entities import user_id
from tests.paths import CHECKOUT
from tests.web.running import Page

PLUGIN = CHECKOUT / "packaging" / "ui-plugin"
RESOURCES = PLUGIN / "ovirt-placement-resources"
FRAMED: Any = {"Sec_Fetch_Dest": "iframe"}


def test_a_frame_without_a_session_asks_for_the_token(page: Page) -> None:
    answer = page.ask("/vm/a", **FRAMED)
    assert answer.status == 303
    assert answer.headers["location"] == "/ovirt-placement/portal?next=/ovirt-placement/vm/a"
    assert page.ask("/vm/a").headers["location"].startswith("/ovirt-placement/log-in?")
    asking = page.ask("/portal?next=/ovirt-placement/vm/a&user=1", **FRAMED)
    assert asking.status == 200
    assert "static/portal.js" in asking.text
    assert "static/portal.js" not in page.ask("/portal?tried=yes").text


def test_the_portal_leads_to_its_own_users_session_only(page: Page) -> None:
    cookie = page.session()
    user = user_id("admin@internal")
    onward = page.ask(f"/portal?next=/ovirt-placement/vm/a&user={user}", cookie=cookie)
    assert onward.headers["location"] == "/ovirt-placement/vm/a"
    assert page.ask("/portal?next=/ovirt-placement/vm/a&user=other", cookie=cookie).status == 200
    for elsewhere in ("https://evil.example.com/", "//evil.example.com", "/ovirt-engine/"):
        away = page.ask(f"/portal?next={elsewhere}&user={user}", cookie=cookie)
        assert away.headers["location"] == "/ovirt-placement/"


def test_frames_have_neither_the_name_of_the_page_nor_its_log_out(page: Page) -> None:
    cookie = page.session()
    framed, whole = page.ask("/vm/a", cookie=cookie, **FRAMED).text, page.ask("/vm/a", cookie=cookie).text
    for words in ('class="brand"', 'class="out"'):
        assert words in whole
        assert words not in framed
    assert 'role="search"' in framed


def test_hosts_fail_without_their_clusters_name(page: Page) -> None:
    cookie = page.session()
    assert page.ask("/ha?host=h1&host=h2", cookie=cookie).headers["location"] == (
        "/ovirt-placement/ha/c1?host=h1&host=h2"
    )
    assert page.ask("/ha?host=h1").headers["location"].startswith("/ovirt-placement/log-in?next=")
    statuses = [
        page.ask(f"/ha{query}", cookie=cookie).status for query in ("", "?host=no", "?host=h1&host=h3")
    ]
    assert statuses == [400, 404, 400]


def test_the_plug_in_is_loaded_late_and_knows_no_secret() -> None:
    data = json.loads((PLUGIN / "ovirt-placement.json").read_text())
    assert data["name"] == "ovirt-placement"
    assert data["lazyLoad"] is True
    assert data["config"] == {"page": "/ovirt-placement"}
    assert data["url"] == "plugin/ovirt-placement/plugin.html"
    assert (PLUGIN / data["resourcePath"]) == RESOURCES
    named = re.findall(
        r'(?:src|href)="([^"]+)"', "".join(one.read_text() for one in RESOURCES.glob("*.html"))
    )
    assert sorted(named) == ["plugin.js", "tab.css", "tab.js"]
    assert {one.name for one in RESOURCES.iterdir()} == {*named, "plugin.html", "tab.html"}


def test_the_plug_in_has_no_inline_script_and_sends_nothing_to_any_origin() -> None:
    for file in RESOURCES.iterdir():
        text = file.read_text()
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|innerHTML|eval\(", text), file
        assert "*'" not in text
        assert '"*"' not in text
        assert "setPlaceUnloadHandler" not in text
