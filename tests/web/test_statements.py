"""What is promised of the security of a page that runs; docs/web.md has the list, in the same order."""

import configparser
import json
import re
import socket
from urllib.parse import urlsplit

import pytest

from ovirt_simulator.core.entities import BY_NAME, user_id
from tests.paths import CHECKOUT
from tests.portal import Portal
from tests.web.running import HOSTILE, VIEWS, Page

ACTS = [
    *("/cluster/c1/pause", "/cluster/c1/resume", "/plan/c1/approve", "/plan/c1/refuse", "/plan/c1/apply"),
    *("/group/g1/edit", "/cluster/c1/new-group"),
]
CROSS_SITE: dict[str, str | None] = {"Sec_Fetch_Site": "cross-site"}


def test_1_the_cookie_is_for_the_page_alone_new_at_each_log_in_and_dead_after_log_out(page: Page) -> None:
    answer = page.log_in()
    words = {word.strip().lower() for word in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "secure", "samesite=strict", f"path={page.root}"} == words
    assert answer.cookie is not None
    assert len(answer.cookie) >= 43  # 256 bits in base64
    assert page.session() != answer.cookie
    assert page.act("/log-out", answer.cookie).status == 303
    assert page.ask("/", cookie=answer.cookie).status == 303
    # A log-in ends the session that there was: a cookie that somebody planted is worth nothing.
    former = page.session()
    page.ask("/log-in", cookie=former, form={"name": "admin@internal", "password": "password"})
    assert page.ask("/", cookie=former).status == 303


def test_2_the_engines_token_stays_in_memory(page: Page) -> None:
    cookie = page.session()
    for view in [*VIEWS, "/api/v1/status"]:
        assert page.ask(view, cookie=cookie).status == 200
    tokens = set(page.server.tokens._sessions)
    everything = "\n".join([*page.said, page.audit(), page.process.log])
    assert tokens
    assert not [token for token in tokens if token in everything]


def test_3_nobody_is_logged_in_by_an_address(page: Page) -> None:
    """There is no code flow, and so no call-back that another site could lead to."""
    for path in ("/log-in?code=1&state=2", "/log-in?token=1", "/log-in/token?token=1", "/portal?token=1"):
        answer = page.ask(path)
        assert answer.status in (400, 405)
        assert answer.cookie is None


def test_4_what_changes_something_comes_from_the_page_in_a_session(page: Page) -> None:
    cookie = page.session()
    csrf = page.csrf(cookie)
    evil: dict[str, str | None] = {"Origin": "https://evil.example.com"}
    others = (evil, CROSS_SITE, {"Sec_Fetch_Site": "same-site"}, {"Origin": None}, {"Origin": "null"})
    for path in (*ACTS, "/health", "/log-out"):
        for headers in others:
            assert page.ask(path, cookie=cookie, form={"csrf": csrf}, **headers).status == 403
        assert page.ask(path, cookie=cookie, form={"csrf": "guessed"}).status == 403
        if path != "/log-out":
            assert page.ask(path, form={"csrf": csrf}).status == 401
    for headers in (evil, CROSS_SITE):
        assert page.log_in(**headers).status == 403
    for path in (*ACTS[:-2], "/log-out"):
        answer = page.ask(path, cookie=cookie)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert page.ask("/", cookie=cookie).status == 200


@pytest.mark.parametrize("name", ["evil.example.com", "127.0.0.1", "localhost:1", "[::1]:1", ""])
def test_5_the_page_has_its_own_names_only(page: Page, name: str) -> None:
    assert page.ask("/log-in", Host=name).status == 421


def test_6_nothing_runs_that_is_not_the_pages(page: Page) -> None:
    cookie = page.session()
    engine = page.server.url
    for view in VIEWS:
        answer = page.ask(view, cookie=cookie)
        policy = answer.headers["content-security-policy"]
        assert policy == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
            " connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none';"
            f" frame-ancestors {engine}"
        )
        assert "x-frame-options" not in answer.headers
        assert not re.search(
            r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|hx-on|hx-live|js:",
            answer.text.replace("&#34;", "").replace("&lt;img src=x onerror", ""),
        )
    assert page.ask("/log-in").headers["content-security-policy"].endswith("frame-ancestors 'none'")
    # What asks the portal for its token asks the engine's origin alone.
    asking = page.ask("/portal")
    assert asking.headers["content-security-policy"].endswith(f"frame-ancestors {engine}")
    assert f'data-asked-of="{engine}"' in asking.text


def test_7_answers_are_neither_kept_nor_guessed_nor_handed_on(page: Page) -> None:
    cookie = page.session()
    for view in [*VIEWS, "/api/v1/status", "/nothing"]:
        headers = page.ask(view, cookie=cookie).headers
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
    assert page.ask("/static/page.css").headers["cache-control"] == "no-cache"


def test_8_names_are_text_wherever_they_are_shown(page: Page) -> None:
    cookie = page.session()
    for view in (
        *("/", "/map/c2/table", "/ha/c2?host=h3", "/cluster/c2", "/vm/x", "/host/h3", "/group/g2"),
        *("/search?q=img", "/search?q=%3Cimg%20src%3Dx%3E%E2%80%AE"),
    ):
        text = page.ask(view, cookie=cookie).text
        assert "<img" not in text
        assert "\u202e" not in text
        assert "{{49" not in text
        if view != "/":
            assert "&lt;img" in text
    for path in ("/api/v1/vms/x/why", "/api/v1/groups", "/api/v1/clusters/c2/map"):
        answer = page.ask(path, cookie=cookie)
        assert answer.headers["content-type"] == "application/json"
        assert HOSTILE in json.dumps(json.loads(answer.text), ensure_ascii=False).replace('\\"', '"')
    long = page.ask(f"/search?q={'n' * 2000}", cookie=cookie)
    assert long.status == 200


@pytest.mark.system
def test_9_an_act_needs_the_permit_there_and_then(page: Page) -> None:
    """A reader who administers one cluster may not pause another; once that is taken away, none."""
    cluster_admin = BY_NAME["ClusterAdmin"].id
    reader = user_id("reader@internal")
    granted = Portal(page.engine).grant(cluster_admin, reader, cluster="c1")
    cookie = page.session("reader@internal")
    form = {"hours": "1", "reason": "test"}
    assert "Pause migrations" in page.ask("/cluster/c1", cookie=cookie).text
    assert "Pause migrations" not in page.ask("/cluster/c2", cookie=cookie).text
    assert page.act("/cluster/c2/pause", cookie, **form).status == 403
    assert "are paused" not in page.ask("/cluster/c2", cookie=cookie).text
    assert page.act("/cluster/c1/pause", cookie, **form).status == 303
    page.until(lambda: "are paused" in page.ask("/cluster/c1", cookie=cookie).text)
    Portal(page.engine).revoke(granted.id)
    assert page.act("/cluster/c1/resume", cookie).status == 403
    assert "are paused" in page.ask("/cluster/c1", cookie=cookie).text
    assert "Pause migrations" not in page.ask("/cluster/c1", cookie=cookie).text
    admin = page.session()
    assert page.act("/cluster/c1/resume", admin).status == 303
    page.until(lambda: "are paused" not in page.ask("/cluster/c1", cookie=admin).text)
    assert page.act("/cluster/nothing/pause", admin).status == 404


def test_15_each_log_in_and_each_act_is_a_line_of_the_audit_log(page: Page) -> None:
    cookie = page.session()
    page.act("/cluster/c1/pause", cookie, hours="1")
    page.act("/cluster/c1/resume", cookie)
    page.log_in("user@internal")
    page.log_in("nobody@internal\nFORGED", "wrong")
    page.act("/cluster/c2/pause", page.session("reader@internal"), hours="1")
    page.act("/cluster/gone/pause", cookie, hours="1")
    page.ask("/plan/c1/refuse", cookie=cookie, form={"csrf": "guessed"})
    lines = [json.loads(line) for line in page.audit().splitlines()]
    said = {(one["who"].partition("@")[0], one["act"], one["outcome"].partition(":")[0]) for one in lines}
    assert said >= {
        *(("admin", "pause", "done"), ("admin", "resume", "done"), ("reader", "pause", "refused")),
        *(("user", "log-in", "refused"), ("nobody", "log-in", "refused")),
        *(("admin", "/cluster/gone/pause", "refused"), ("admin", "/plan/c1/refuse", "refused")),
    }
    assert all(one["address"] == "127.0.0.1" and one["time"] for one in lines)
    acts = [one for one in lines if one["act"] == "pause"]
    assert all(one["on"] and one["correlation_id"].startswith("placement-") for one in acts)


def test_16_what_is_asked_is_bounded_and_what_fails_says_nothing_of_the_inside(page: Page) -> None:
    cookie = page.session()
    assert page.ask("/log-in", form={"name": "n" * 2**21, "password": "p"}).status == 413
    assert page.ask("/?surprise=1", cookie=cookie).status == 400
    where = urlsplit(page.url)
    for _ in range(3):  # what is no request is answered, and fills no log
        with socket.create_connection((where.hostname, where.port)) as stranger:
            stranger.sendall(b"\x16\x03\x01\r\n\r\n")
            assert stranger.recv(99).startswith(b"HTTP/1.1 400 ")
    assert "Invalid" not in page.process.log
    assert page.ask("/history?days=1&days=2", cookie=cookie).status == 400
    wrong = "/history?days=-1 /history?days=%F0%9F%92%A9 /vm/%00 /vm/..%2f..%2fetc /api/v1/vms/%ff/why"
    for path in wrong.split():
        answer = page.ask(path, cookie=cookie)
        assert answer.status in (400, 404)
        assert "Traceback" not in answer.text
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(CHECKOUT / "packaging" / "ovirt-placement-web.service")
    unit = dict(parser["Service"])
    assert (unit["User"], unit["ProtectSystem"]) == ("ovirt-placement-web", "strict")
    assert (unit["ReadWritePaths"], unit["CapabilityBoundingSet"]) == ("-/var/lib/ovirt-placement", "")
