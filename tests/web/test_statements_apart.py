"""What is promised of the page's security and needs a page of its own, or parts of one."""

import json
import re
import socket
import ssl
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st

from ovirt_placement.engine.users import Rights
from ovirt_placement_web import sessions
from ovirt_placement_web.log_in import counted_address, onward
from ovirt_placement_web.sessions import Sessions
from ovirt_placement_web.settings import WebSettings, engine_origin, listening, origins
from ovirt_service.errors import UserError
from tests.configuration import write_configuration
from tests.paths import CHECKOUT
from tests.web.conftest import STATE
from tests.web.running import ASKED, COOKIE, ROOT, VIEWS, Page, certified, free_port, page_process, paged

WEB = CHECKOUT / "web" / "ovirt_placement_web"


NOBODY = Rights("id", "name", administrator=True)
SITE: Any = SimpleNamespace(root=ROOT)
#: Below the root of the page.
_WAYS_OUT = [
    *("/../../ovirt-engine/sso/logout", "/..", "/.", "/./", "/vm/../..", "/..;/x", "/..;a=b/x"),
    *("/%2e%2e/%2e%2e/ovirt-engine/sso/logout", "/%2E%2E/x", "/.%2e/x", "/%2e./x", "/vm%2f..%2f..%2fx"),
    *("/%252e%252e/x", "/%25252e%25252e/x", "/%252f%252fevil.example.com", "/%2e%2e%3b/x"),
    *("/\\evil.example.com", "/%5cevil.example.com", "/%255c..", "/?q=\\x"),
    *("//evil.example.com", "/%2f/evil.example.com", "/vm//a", "/a%2f%2fb"),
    *("/\tx", "/%09x", "/%0d%0aSet-Cookie:x", "/%00", "/x%7f", "/\u202e", "/%e2%80%ae", "/?q=\n"),
    *("#/../..", "", "x", "@evil.example.com/", ".evil.example.com/", "-other/"),
]
_ELSEWHERE = [
    *("", "/", "//evil.example.com", "https://evil.example.com/", "javascript:alert(1)", "data:,x"),
    *("/ovirt-engine/", "\\\\evil.example.com", f" {ROOT}/", f"https://evil.example.com{ROOT}/", ".."),
    *(f"/{ROOT}/", f"/x/..{ROOT}/", f"%2f{ROOT[1:]}/", f"/%2e{ROOT}/"),
]


@pytest.mark.parametrize("wanted", [*(ROOT + way for way in _WAYS_OUT), *_ELSEWHERE])
def test_3_nothing_leads_out_of_the_page_after_a_log_in(wanted: str) -> None:
    assert onward(SITE, wanted) == f"{ROOT}/"


@pytest.mark.parametrize(
    "way",
    [
        *("/", "/vm/a", "/vm/a%20b", "/vm/100%25", "/vm/a..b", "/vm/...", "/map/c1/table?page=2"),
        *("/search?q=..%2F..%2Fx", "/search?q=a//b", "/history?q=%252e", "/group/g1/", "/vm/%C3%A4"),
    ],
)
def test_3_a_path_of_the_page_is_gone_on_to(way: str) -> None:
    assert onward(SITE, ROOT + way) == ROOT + way


@pytest.mark.system
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
        assert (page.log_in().status, page.ask("/log-in/token", form={"token": "abc"}).status) == (503, 503)
        assert page.ask("/api/v1/status", Authorization="Bearer abc").status == 503
        assert "Paused" not in page.ask("/cluster/c1", cookie=cookie).text


@pytest.mark.system
def test_11_failed_log_ins_slow_others_down_and_lock_nobody_out(tmp_path: Path) -> None:
    with paged(tmp_path, STATE) as page:
        names = ("admin@internal", "nobody@internal", "x@y", "z")
        texts = {page.log_in(name, "wrong").text.replace(f'value="{name}"', "") for name in names}
        assert len(texts) == 1, "unknown names are answered as known ones"
        wrong = [page.log_in("admin@internal", "wrong") for _ in range(4)]
        assert [answer.status for answer in wrong] == [401] * 4
        began = time.monotonic()
        assert page.log_in("admin@internal", "wrong again").status == 401
        assert time.monotonic() - began >= 1.0
        assert page.log_in("admin@internal", "password").status == 303


@pytest.mark.system
def test_12_a_stream_ends_with_its_session(tmp_path: Path) -> None:
    with paged(tmp_path, STATE, web="streams_per_session = 2\nvalidate_seconds = 0.2") as page:
        out, revoked = page.session(), page.session()
        streams = [_stream(page, cookie) for cookie in (out, out, revoked)]
        assert [stream.status_code for stream in streams] == [200] * 3
        assert (_stream(page, out).status_code, _stream(page, "nobody").status_code) == (429, 401)
        assert page.act("/log-out", out).status == 303
        page.server.tokens.revoke_all()
        for stream in streams:
            assert "event: end" in stream.content.decode()  # read to its end


def test_12_who_logs_in_again_and_again_logs_nobody_else_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_MOST_SESSIONS", 10)
    now = 0.0
    found = Sessions(60.0, lambda: now)
    person, _ = found.begin(NOBODY, "token")
    cookies = []
    for _ in range(30):
        now += 1.0
        cookies.append(found.begin(Rights("reader", "reader", administrator=True), "token")[0])
    assert found.find(person) is not None
    assert [one for one in cookies if found.find(one) is not None] == cookies[-9:]


@given(st.lists(st.tuples(st.sampled_from([1, 30, 31, 60, 61]), st.booleans()), min_size=3, max_size=12))
@example([(40, True), (40, True), (40, True)])
@example([(40, False), (40, True)])
def test_12_sessions_end_that_nobody_has_used_for_a_while(finds: list[tuple[int, bool]]) -> None:
    """What a page asks by itself is no use; the end is final."""
    now = 0.0
    sessions = Sessions(60.0, lambda: now)
    cookie, session = sessions.begin(NOBODY, "token")
    until, over = 60.0, False
    for seconds, is_use in finds:
        now += seconds
        over = over or now > until
        assert sessions.find(cookie, use=is_use) is (None if over else session)
        if is_use:
            until = now + 60.0


@pytest.mark.system
def test_13_forwarded_addresses_count_from_trusted_proxies_only(tmp_path: Path, page: Page) -> None:
    page.log_in("first@internal", "wrong", X_Forwarded_For="192.0.2.7")
    assert '"192.0.2.7"' not in page.audit()
    with paged(tmp_path, STATE, web='trusted_proxies = ["127.0.0.1"]') as behind:
        behind.log_in("first@internal", "wrong", X_Forwarded_For="192.0.2.7")
        assert '"192.0.2.7"' in behind.audit()


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        *((address, "") for address in ("127.0.0.1", "::1", "198.51.100.1", "")),
        ("2001:db8:0:7::1", "20010db800000007/64"),
        ("2001:db8:0:7:ffff::2", "20010db800000007/64"),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.7"),
        ("unknown", "unknown"),
    ],
)
def test_13_an_address_that_many_people_come_from_is_not_counted(address: str, counted: str) -> None:
    settings = WebSettings(trusted_proxies=("198.51.100.1",))
    client = SimpleNamespace(host=address) if address else None
    request: Any = SimpleNamespace(client=client, scope={"site": SimpleNamespace(settings=settings)})
    assert counted_address(request) == counted


@pytest.mark.parametrize(
    ("listen", "meant", "known"),
    [
        ("127.0.0.1:8446", "", ("https://127.0.0.1:8446", "https://localhost:8446")),
        ("engine.example.com:443", "", ("https://engine.example.com",)),
        ("0.0.0.0:443", "https://Engine.example.com:443", ("https://engine.example.com",)),
        ("[::1]:80", "http://[::1]:80", ("http://[::1]",)),
        ("[::]:8446", "", None),
        ("0.0.0.0:8446", "", None),
    ],
)
def test_5_the_page_is_known_by_what_browsers_send(
    listen: str, meant: str, known: tuple[str, ...] | None
) -> None:
    pem = Path("cert.pem")
    settings = WebSettings(listen=listen, origins=tuple(meant.split()), certificate=pem, key=pem)
    with nullcontext() if known else pytest.raises(UserError, match="no browser asks for"):
        assert origins(settings, listening(settings, "web.toml"), "web.toml") == known
    assert engine_origin("https://Engine.example.com:443/ovirt-engine/api") == "https://engine.example.com"


@pytest.mark.system
def test_14_others_than_this_machine_get_tls(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="set certificate and key"):
        listening(WebSettings(listen="0.0.0.0:8446"), "web.toml")
    with pytest.raises(UserError, match="belong together"):
        listening(WebSettings(key=Path("key.pem")), "web.toml")
    port = free_port()
    lines = f'{certified(tmp_path)}origins = ["https://localhost:{port}"]'
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


def test_17_no_address_of_another_origin_is_in_the_page() -> None:
    shipped = [*WEB.glob("templates/*.html"), *WEB.glob("static/*.js"), *WEB.glob("static/*.css")]
    shipped += CHECKOUT.glob("packaging/ui-plugin/ovirt-placement-resources/*")
    assert shipped
    for file in shipped:
        assert not re.search(r"""(src|href|url\(|import|fetch\()["'( ]*(https?:)?//""", file.read_text()), (
            file
        )


def test_the_bundle_has_each_class_that_templates_use_and_is_small() -> None:
    sources, vendor = [*WEB.glob("templates/*.html"), *WEB.glob("static/*.js")], WEB / "static" / "vendor"
    used = set(re.findall(r"pf-v6-c-[a-z-]*[a-z](?=[ \"_])", "".join(file.read_text() for file in sources)))
    sheet, own = (vendor / "patternfly.css").read_text(), (WEB / "static" / "page.css").read_text()
    assert {one for one in used if f".{one}" not in sheet} == set()
    assert sum(file.stat().st_size for file in vendor.iterdir()) <= 300 * 1024
    fonts = re.findall(r'url\("([^"]+)"\)', own)
    assert fonts
    assert all((WEB / "static" / font).is_file() for font in fonts)
    assert "url(" not in sheet


def _stream(page: Page, cookie: str) -> requests.Response:
    headers = {"Cookie": f"{COOKIE}={cookie}"}
    return requests.get(f"{page.origin}{ROOT}/events", headers=headers, stream=True, timeout=60)
