"""What is promised of the page's security, one test each; docs/web.md has the list in the same order."""

from __future__ import annotations

import configparser
import json
import re
import socket
import ssl
from pathlib import Path

import pytest
import requests
import trustme

from ovirt_placement_web.sessions import Sessions, Streams, Throttle
from ovirt_placement_web.settings import WebSettings, listening
from ovirt_service.errors import UserError
from ovirt_simulator.core.built_in_roles import BY_NAME
from ovirt_simulator.core.entities import user_id
from tests.configuration import write_configuration
from tests.paths import CHECKOUT
from tests.web.conftest import STATE
from tests.web.running import COOKIE, HOSTILE, ROOT, Page, page_process, paged

WEB = CHECKOUT / "web" / "ovirt_placement_web"
#: Views that ask the engine, and so are not shown while it is away.
ASKED = ["/plan/c1/now"]
VIEWS = [
    *("/", "/cluster/c1", "/map/c1", "/map/c1/table", "/ha/c1", "/ha/c1?host=h1", "/vm/a", "/host/h1"),
    "/plan/c1",
    *ASKED,
    *("/group/g1", "/group/g1/edit", "/cluster/c1/new-group", "/history", "/keys", "/doctor", "/search?q=db"),
]

ACTS = [
    *("/cluster/c1/pause", "/cluster/c1/resume", "/plan/c1/approve", "/plan/c1/refuse", "/plan/c1/apply"),
    *("/group/g1/edit", "/group/g1/remove", "/cluster/c1/new-group"),
]


def test_1_the_cookie_is_for_the_page_alone_new_at_each_log_in_and_dead_after_log_out(page: Page) -> None:
    answer = page.log_in()
    words = {word.strip().lower() for word in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "secure", "samesite=strict", f"path={page.root}"} == words
    assert answer.cookie is not None
    assert len(answer.cookie) >= 43  # 256 bits in base64
    assert page.session() != answer.cookie
    csrf = page.csrf(answer.cookie)
    assert page.ask("/log-out", cookie=answer.cookie, form={"csrf": csrf}).status == 303
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
    everything = "\n".join([*page.said, page.audit(), page.process.log.read_text()])
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
    for path in (*ACTS, "/doctor", "/log-out"):
        refusals = [
            page.ask(path, cookie=cookie, form={"csrf": csrf}, Origin="https://evil.example.com").status,
            page.ask(path, cookie=cookie, form={"csrf": csrf}, Origin=None).status,
            page.ask(path, cookie=cookie, form={"csrf": csrf}, Origin="null").status,
            page.ask(path, cookie=cookie, form={"csrf": csrf}, Sec_Fetch_Site="cross-site").status,
            page.ask(path, cookie=cookie, form={"csrf": csrf}, Sec_Fetch_Site="same-site").status,
            page.ask(path, cookie=cookie, form={"csrf": "guessed"}).status,
        ]
        assert refusals == [403] * 6
        if path != "/log-out":
            assert page.ask(path, form={"csrf": csrf}).status == 401
    assert page.log_in(Sec_Fetch_Site="cross-site").status == 403
    assert page.log_in(Origin="https://evil.example.com").status == 403
    for path in (*ACTS[:-3], "/group/g1/remove", "/log-out"):
        assert page.ask(path, cookie=cookie).status == 405
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
            answer.text.replace("&#34;", ""),
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
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
    assert page.ask("/static/page.css").headers["cache-control"] == "no-cache"


def test_8_names_are_text_wherever_they_are_shown(page: Page) -> None:
    cookie = page.session()
    views = [
        "/",
        "/map/c2/table",
        "/ha/c2?host=h3",
        "/cluster/c2",
        "/vm/x",
        "/host/h3",
        "/group/g2",
        "/search?q=img",
        "/search?q=%3Cimg%20src%3Dx%3E%E2%80%AE",
    ]
    for view in views:
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


def test_9_an_act_needs_the_permit_there_and_then(page: Page) -> None:
    """A reader who administers one cluster may not pause another; once that is taken away, none."""
    cluster_admin = BY_NAME["ClusterAdmin"].id
    reader = user_id("reader@internal")
    granted = page.engine.access.grant(cluster_admin, reader, cluster="c1")
    cookie = page.session("reader@internal")
    csrf = page.csrf(cookie)
    form = {"csrf": csrf, "hours": "1", "reason": "test"}
    assert "Pause migrations" in page.ask("/cluster/c1", cookie=cookie).text
    assert "Pause migrations" not in page.ask("/cluster/c2", cookie=cookie).text
    assert page.ask("/cluster/c2/pause", cookie=cookie, form=form).status == 403
    assert "Paused" not in page.ask("/cluster/c2", cookie=cookie).text
    assert page.ask("/cluster/c1/pause", cookie=cookie, form=form).status == 303
    page.until(lambda: "Paused" in page.ask("/cluster/c1", cookie=cookie).text)
    page.engine.access.revoke(granted.id)
    assert page.ask("/cluster/c1/resume", cookie=cookie, form=form).status == 403
    assert "Paused" in page.ask("/cluster/c1", cookie=cookie).text
    assert "Pause migrations" not in page.ask("/cluster/c1", cookie=cookie).text
    admin = page.session()
    assert page.ask("/cluster/c1/resume", cookie=admin, form={"csrf": page.csrf(admin)}).status == 303
    page.until(lambda: "Paused" not in page.ask("/cluster/c1", cookie=admin).text)
    assert page.ask("/cluster/nothing/pause", cookie=admin, form={"csrf": page.csrf(admin)}).status == 404


def test_10_while_the_engine_is_away_the_last_state_is_read_and_nothing_is_done(tmp_path: Path) -> None:
    with paged(tmp_path, STATE) as page:
        cookie = page.session()
        csrf = page.csrf(cookie)
        page.server.close()
        page.until(lambda: "The engine does not answer" in page.ask("/cluster/c1", cookie=cookie).text)
        for view in VIEWS:
            answer = page.ask(view, cookie=cookie)
            assert answer.status == (503 if view in ASKED else 200)
            assert re.search(r'data-true-at="20[0-9T:+-]+"', answer.text)
        document = json.loads(page.ask("/api/v1/violations", cookie=cookie).text)
        assert document["age_seconds"] > 0
        assert document["as_of"]
        assert page.ask("/cluster/c1/pause", cookie=cookie, form={"csrf": csrf}).status == 503
        assert page.log_in().status == 503
        assert page.ask("/log-in/token", form={"token": "abc"}).status == 503
        assert page.ask("/api/v1/status", Authorization="Bearer abc").status == 503
        assert "Paused" not in page.ask("/cluster/c1", cookie=cookie).text


@pytest.mark.parametrize("tries", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_11_failed_log_ins_are_few(tmp_path: Path, tries: int) -> None:
    with paged(tmp_path, STATE) as page:
        wrong = [page.log_in("admin@internal", "wrong") for _ in range(5)]
        assert [answer.status for answer in wrong] == [401] * 5
        asked = []
        page.server.tokens.log_in = lambda *words: asked.append(words)  # type: ignore[assignment,return-value,func-returns-value]
        refused = [page.log_in("admin@internal", "password") for _ in range(tries)]
        assert {answer.status for answer in refused} == {429}
        assert all(0 < int(answer.headers["retry-after"]) <= 300 for answer in refused)
        assert asked == []
    now = [0.0]
    throttle = Throttle(lambda: now[0])
    for number in range(5):
        throttle.failed("Admin@internal", f"192.0.2.{number}")
    assert throttle.begin("admin@INTERNAL", "192.0.2.99") == 300.0
    assert throttle.begin("other@internal", "192.0.2.1") == 0.0
    now[0] = 300.0
    assert throttle.begin("admin@internal", "192.0.2.99") == 0.0
    # Log-ins by token have no name: who fails does not lock others out.
    for _ in range(5):
        throttle.failed("", "192.0.2.1")
    assert throttle.begin("", "192.0.2.1") == 300.0
    assert throttle.begin("", "192.0.2.2") == 0.0


def test_11_unknown_names_are_answered_as_known_ones(tmp_path: Path) -> None:
    with paged(tmp_path, STATE) as page:
        texts = {
            page.log_in(name, "wrong").text.replace(f'value="{name}"', "")
            for name in ("admin@internal", "nobody@internal", "x@y", "z")
        }
        assert len(texts) == 1


def test_12_a_stream_ends_with_its_session(tmp_path: Path) -> None:
    with paged(tmp_path, STATE, web="streams_per_session = 2\nvalidate_seconds = 0.2") as page:
        out, revoked = page.session(), page.session()
        streams = [_stream(page, cookie) for cookie in (out, out, revoked)]
        assert [stream.status_code for stream in streams] == [200] * 3
        assert _stream(page, out).status_code == 429
        assert _stream(page, "nobody").status_code == 401
        csrf = page.csrf(out)
        assert page.ask("/log-out", cookie=out, form={"csrf": csrf}).status == 303
        page.server.tokens.revoke_all()
        for stream in streams:
            assert "event: end" in stream.content.decode()  # read to its end


def test_12_streams_and_idle_sessions_are_bounded() -> None:
    now = [0.0]
    sessions, streams = Sessions(60.0, lambda: now[0]), Streams(2, 2)
    cookie, session = sessions.begin(_nobody(), "token")
    other = sessions.begin(_nobody(), "token")[1]
    with streams.opened(session) as first, streams.opened(other) as second, streams.opened(other) as third:
        assert (first, second, third) == (True, True, False)
    assert streams.open == 0
    now[0] = 59.0
    assert sessions.find(cookie, use=False) is session
    now[0] = 61.0
    assert sessions.find(cookie) is None


def test_13_forwarded_addresses_count_from_trusted_proxies_only(tmp_path: Path, page: Page) -> None:
    page.log_in("first@internal", "wrong", X_Forwarded_For="192.0.2.7")
    assert '"192.0.2.7"' not in page.audit()
    with paged(tmp_path, STATE, web='trusted_proxies = ["127.0.0.1"]') as behind:
        behind.log_in("first@internal", "wrong", X_Forwarded_For="192.0.2.7")
        assert '"192.0.2.7"' in behind.audit()


def test_14_others_than_this_machine_get_tls(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="set certificate and key"):
        listening(WebSettings(listen="0.0.0.0:8446"), "web.toml")
    with pytest.raises(UserError, match="belong together"):
        listening(WebSettings(key=Path("key.pem")), "web.toml")
    authority = trustme.CA()
    served = authority.issue_cert("localhost")
    served.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    served.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = f'certificate = "{tmp_path}/cert.pem"\nkey = "{tmp_path}/key.pem"\norigins = ["https://localhost:{port}"]'
    file = write_configuration(
        tmp_path, "http://127.0.0.1:9/ovirt-engine/api", more=f'[web]\nlisten = "127.0.0.1:{port}"\n{lines}\n'
    )
    with page_process(file):
        answer = requests.get(
            f"https://localhost:{port}{ROOT}/log-in", verify=str(tmp_path / "ca.pem"), timeout=30
        )
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"]
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(tmp_path / "ca.pem")
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("localhost", port)) as plain, pytest.raises(ssl.SSLError):
            old.wrap_socket(plain, server_hostname="localhost")


def test_15_each_log_in_and_each_act_is_a_line_of_the_audit_log(page: Page) -> None:
    cookie = page.session()
    page.ask("/cluster/c1/pause", cookie=cookie, form={"csrf": page.csrf(cookie), "hours": "1"})
    page.ask("/cluster/c1/resume", cookie=cookie, form={"csrf": page.csrf(cookie)})
    page.log_in("user@internal")
    page.log_in("nobody@internal\nFORGED", "wrong")
    reader = page.session("reader@internal")
    page.ask("/cluster/c2/pause", cookie=reader, form={"csrf": page.csrf(reader), "hours": "1"})
    lines = [json.loads(line) for line in page.audit().splitlines()]
    said = [(one["who"].partition("@")[0], one["act"], one["outcome"].partition(":")[0]) for one in lines]
    assert ("admin", "pause", "done") in said
    assert ("admin", "resume", "done") in said
    assert ("user", "log-in", "refused") in said
    assert ("nobody", "log-in", "refused by the engine") in said
    assert ("reader", "pause", "refused") in said
    assert all(one["address"] == "127.0.0.1" and one["time"] for one in lines)
    acts = [one for one in lines if one["act"] == "pause"]
    assert all(one["on"] and one["correlation_id"].startswith("placement-") for one in acts)


def test_16_what_is_asked_is_bounded_and_what_fails_says_nothing_of_the_inside(page: Page) -> None:
    cookie = page.session()
    assert page.ask("/log-in", form={"name": "n" * 2**21, "password": "p"}).status == 413
    assert page.ask("/?surprise=1", cookie=cookie).status == 400
    assert page.ask("/history?days=1&days=2", cookie=cookie).status == 400
    for path in (
        "/history?days=-1",
        "/history?days=%F0%9F%92%A9",
        "/vm/%00",
        "/vm/..%2f..%2fetc",
        "/api/v1/vms/%ff/why",
    ):
        answer = page.ask(path, cookie=cookie)
        assert answer.status in (400, 404)
        assert "Traceback" not in answer.text
    unit = _unit()
    assert unit["User"] == "ovirt-placement-web"
    assert unit["ProtectSystem"] == "strict"
    assert unit["ReadWritePaths"] == "-/var/lib/ovirt-placement"
    assert unit["CapabilityBoundingSet"] == ""


def test_17_no_address_of_another_origin_is_in_the_page() -> None:
    shipped = [*WEB.glob("templates/*.html"), *WEB.glob("static/*.js"), *WEB.glob("static/*.css")]
    shipped += CHECKOUT.glob("packaging/ui-plugin/ovirt-placement-resources/*")
    assert shipped
    for file in shipped:
        assert not re.search(r"""(src|href|url\(|import|fetch\()["'( ]*(https?:)?//""", file.read_text()), (
            file
        )


def _stream(page: Page, cookie: str) -> requests.Response:
    headers = {"Cookie": f"{COOKIE}={cookie}"}
    return requests.get(f"{page.origin}{ROOT}/events", headers=headers, stream=True, timeout=60)


def _nobody() -> object:
    from ovirt_placement.engine.reading.rights import Rights

    return Rights("id", "name", administrator=True)


def _unit() -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(CHECKOUT / "packaging" / "ovirt-placement-web.service")
    return dict(parser["Service"])
