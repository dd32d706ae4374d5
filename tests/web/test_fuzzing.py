"""Each address, asked with whatever may come: none fails or shows the inside, and no GET changes a thing."""

import http.client
import os
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, quote_from_bytes, urlencode, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth

from ovirt_placement.model import state_file
from ovirt_placement.store.enforcer.intents import Store
from tests.examples import EXAMPLES, examples
from tests.web.conftest import STATE
from tests.web.running import COOKIE, HOSTILE, ROOT, Address, Page, addresses, paged

ALL = addresses()
#: What every answer of the application carries.
CARRIED = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
KEYS = (
    *("q", "days", "page", "host", "domain", "plan", "without", "next", "cluster", "hosts", "code"),
    *("level", "on", "as", "name", "at", "stop", "return"),
)
FIELDS = (
    *("csrf", "hours", "reason", "plan", "name", "password", "token", "next", "was", "do", "gone"),
    *("priority", "vms_rule", "hosts_rule", "vms_enforcing", "vms", "hosts", "vm_labels"),
    *("host_labels", "level", "on", "as", "value", "weight", "cluster", "values", "sticky", "work"),
    *("return", "stop", "run"),
)
HEADERS = (
    *("Cookie", "Authorization", "Content-Type", "Live-Update", "X-Forwarded-For"),
    *("X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "Sec-Fetch-Site", "Range"),
    *("If-Modified-Since", "If-None-Match", "Accept-Language", "Host", "Origin"),
    *("X-HTTP-Method-Override", "HX-Request"),
)
KNOWN = ("c1", "c2", "h1", "h3", "a", "x", "big", "g1", "g2", "db-1", "alpha", "node", "nothing", HOSTILE)
#: What has been the end of others.
AWKWARD = (
    *("", "0", "-1", "1", "9" * 5000, "nan", "1e999", "٣", "²", "None", "\0", "\ud7ff\uffff"),
    *("../../etc/passwd", "%00", "%", "[", "{{7*7}}", "' OR 1=1 --", "\r\nSet-Cookie: a=b"),
    *("disabled", "positive", "negative"),
)

words = st.one_of(st.sampled_from(KNOWN), st.sampled_from(AWKWARD), st.text(max_size=40))
names = st.one_of(words.map(lambda word: quote(word, safe="")), st.binary(max_size=20).map(quote_from_bytes))
fields = st.lists(st.tuples(st.one_of(st.sampled_from(FIELDS), words), words), max_size=6)
queries = st.lists(st.tuples(st.one_of(st.sampled_from(KEYS), words), words), max_size=3)
visible = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_categories=("Cc", "Zs")))
headers = st.dictionaries(st.sampled_from(HEADERS), visible, max_size=3)


class Served(NamedTuple):
    """The page, and a session of an administrator."""

    page: Page
    cookie: str
    csrf: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with paged(tmp_path_factory.mktemp("page"), STATE) as page:
        with page.store(Store) as store:
            store.open_intents()  # makes it
        cookie = page.session()
        yield Served(page, cookie, page.csrf(cookie))


@pytest.mark.parametrize(
    "many", [examples(34), pytest.param(EXAMPLES * 10, marks=pytest.mark.nightly)], ids=["few", "many"]
)
def test_no_get_fails_shows_the_inside_or_changes_a_thing(served: Served, many: int) -> None:
    before = _everything(served.page)

    @settings(max_examples=many, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from([one for one in ALL if one.method == "GET"]), names, queries, headers, st.booleans()
    )
    def ask(
        address: Address, name: str, query: list[tuple[str, str]], sent: dict[str, str], known: bool
    ) -> None:
        path = address.of(name) + (f"?{urlencode(query, errors='replace')}" if query else "")
        _asked(served, "GET", path, sent if not known else _of_session(served, sent), None)

    ask()
    assert _everything(served.page) == before


@pytest.mark.parametrize(
    "many", [examples(34), pytest.param(EXAMPLES * 10, marks=pytest.mark.nightly)], ids=["few", "many"]
)
def test_no_form_fails_or_shows_the_inside(served: Served, many: int) -> None:
    @settings(max_examples=many, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from([one for one in ALL if one.method != "GET"]),
        st.one_of(st.sampled_from(KNOWN).map(quote), names),
        st.one_of(fields.map(lambda form: urlencode(form, errors="replace").encode()), st.binary()),
        headers,
        st.booleans(),
    )
    def send(address: Address, name: str, body: bytes, sent: dict[str, str], known: bool) -> None:
        sent = {"Content-Type": "application/x-www-form-urlencoded", "Origin": served.page.origin, **sent}
        if known:
            sent = _of_session(served, sent)
            if address.path != "/log-out":  # else the others would have no session
                body = f"csrf={served.csrf}&".encode() + body
        _asked(served, address.method, address.of(name), sent, body)

    send()


@pytest.mark.parametrize("digits", ["9" * 5000, "1" * 4301, "0" * 6000 + "1"])
@pytest.mark.parametrize("path", ["/history?days=", "/map/c1/table?page="])
def test_a_number_of_any_length_is_answered(served: Served, path: str, digits: str) -> None:
    _asked(served, "GET", path + digits, _of_session(served, {}), None)


def _of_session(served: Served, sent: dict[str, str]) -> dict[str, str]:
    return {**sent, "Cookie": f"{COOKIE}={served.cookie}"}


def _asked(served: Served, method: str, path: str, sent: dict[str, str], body: bytes | None) -> None:
    connection = http.client.HTTPConnection(urlsplit(served.page.url).netloc, timeout=120)
    try:
        connection.putrequest(method, ROOT + path, skip_host="Host" in sent)
        for name, value in sent.items():
            connection.putheader(name, value.encode("latin-1"))
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        streams = answer.status == 200 and path == "/events"
        text = "" if streams else answer.read().decode(errors="replace")
    finally:
        connection.close()
    shown: Any = (method, path, sent, body, answer.status, text[:300])
    assert answer.status < 500 or answer.status == 503, shown
    assert "Traceback" not in text, shown
    assert 'File "' not in text, shown
    assert {name: answer.getheader(name) for name in CARRIED} == CARRIED, shown
    assert "default-src 'none'" in (answer.getheader("content-security-policy") or ""), shown
    assert answer.getheader("cache-control") in ("no-store", "no-cache"), shown


def _everything(page: Page) -> tuple[bytes, list[str], str]:
    """What the engine, the store and the audit log have."""
    with sqlite3.connect(f"file:{page.folder}/store.db?mode=ro", uri=True) as store:
        rows = list(store.iterdump())
    return state_file.dumps(page.engine.snapshot()), rows, page.audit()


# -- What `/api/v1` describes of itself, against what it answers, by schemathesis: asked well and wrongly.
#: Whatever is drawn, some of it names something: by name and by id.
NAMED = st.sampled_from(["a", "db-1", "big", "x", HOSTILE, "h1", "alpha", "c1", "c2"])
QUERIES = st.sampled_from([{"cluster": "c1"}, {"cluster": "c2"}, {"cluster": "c1", "hosts": "h1,beta"}])


@pytest.fixture(scope="module")
def schema(page: Page) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{page.origin}{ROOT}/api/v1/openapi.json")


@pytest.mark.system
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["well", "wrongly"])
def test_programs_get_what_is_described(
    page: Page, schema: schemathesis.BaseSchema, mode: GenerationMode
) -> None:
    token = page.server.tokens.log_in("admin@internal", "password")
    known = mode is GenerationMode.POSITIVE
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples(20),
            derandomize=bool(os.environ.get("CI")),
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode), NAMED, QUERIES, st.booleans())
        def ask(case: schemathesis.Case, name: str, query: dict[str, str], named: bool) -> None:
            if named and known:
                case.path_parameters = dict.fromkeys(case.path_parameters or {}, name)
                keys = {one.name for one in case.operation.query}
                case.query = {key: value for key, value in query.items() if key in keys}
            # One that is drawn is of another server, which answers 421.
            case.headers = {key: value for key, value in case.headers.items() if key.lower() != "host"}
            # Without a token: after five tries the answer is 429, which test_statements.py is about.
            case.call_and_validate(
                headers={"Authorization": f"Bearer {token}"}, excluded_checks=[ignored_auth]
            )

        ask()
