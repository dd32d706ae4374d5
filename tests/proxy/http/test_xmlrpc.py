"""Reading and writing XML-RPC agree with the standard library."""

import os
import random
import socket
import xmlrpc.client
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from lxml import etree

from ovirt_scheduler_proxy import xmlrpc as own
from ovirt_scheduler_proxy.xmlrpc import Fault
from tests.endurance.fuzzing import XML_TOKENS, damaged
from tests.proxy.running import RunningProxy, serving, units

#: Characters that XML can hold. A carriage return does not survive the standard library's writer.
CHARACTERS = st.characters(
    codec="utf-8",
    exclude_categories=["Cs", "Cc"],
    exclude_characters="\ufffe\uffff",
    include_characters="\t\n",
)
TEXTS = st.text(CHARACTERS, max_size=20)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
VALUES = st.recursive(
    TEXTS | INTEGERS,
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
EXTENSIONS = 'xmlns:ex="http://ws.apache.org/xmlrpc/namespaces/extensions"'


def call(value: str, head: str = "") -> bytes:
    content = f"<methodName>m</methodName><params><param>{value}</param></params>"
    return f"<?xml version='1.0'?>{head}<methodCall {EXTENSIONS}>{content}</methodCall>".encode()


def read(body: bytes) -> Any:
    return own.read_call(body, 10_000)


@given(st.lists(VALUES, max_size=4))
def test_reading_agrees_with_the_standard_library(parameters: list[Any]) -> None:
    body = xmlrpc.client.dumps(tuple(parameters), "someMethod").encode()
    expected, method = xmlrpc.client.loads(body)
    assert read(body) == (method, list(expected))


@given(VALUES)
def test_writing_agrees_with_the_standard_library(value: Any) -> None:
    (found,), _ = xmlrpc.client.loads(own.response(value))
    assert found == value
    assert type(found) is type(value)


@given(st.text())
@example("]]>")
def test_what_xml_cannot_hold_does_not_break_an_answer(text: str) -> None:
    body = own.response([text, text])
    etree.fromstring(body)  # stricter than the standard library's parser, as Java's is
    (found,), _ = xmlrpc.client.loads(body)
    assert isinstance(found, list)
    assert len(found) == 2


def test_a_carriage_return_survives_and_what_the_engine_could_not_read_is_never_written() -> None:
    assert xmlrpc.client.loads(own.response("a\r\nb"))[0] == ("a\r\nb",)
    for value in (2**31, -(2**31) - 1, float("nan"), float("inf"), None, b""):
        with pytest.raises((TypeError, ValueError)):
            own.response([value])


@given(st.integers(0, 1), TEXTS, st.dictionaries(TEXTS, st.lists(TEXTS), max_size=3))
def test_an_answer_has_its_four_keys(code: int, text: str, errors: dict[str, list[str]]) -> None:
    (found,), _ = xmlrpc.client.loads(own.answer(code, [text], errors))
    assert found == {"result_code": code, "result": [text], "plugin_errors": errors, "errors": []}


@given(st.lists(st.tuples(TEXTS, INTEGERS), max_size=5), TEXTS)
def test_weights_have_three_fields(rows: list[tuple[str, int]], unit: str) -> None:
    hosts, values = [host for host, _ in rows], [weight for _, weight in rows]
    (found,), _ = xmlrpc.client.loads(own.response(own.array([own.weights(hosts, values, unit)])))
    assert found == [[host, weight, unit] for host, weight in rows]


@pytest.mark.parametrize("spelling", ["<value><string>{}</string></value>", "<value>{}</value>"])
@pytest.mark.parametrize("count", [3, 9])
def test_what_the_engines_and_pythons_clients_send_is_read(spelling: str, count: int) -> None:
    hosts = [f"h{number}" for number in range(count)]
    values = "".join(map(spelling.format, hosts))
    pair = f"<value><array><data>{spelling.format('U')}<value><i4>2</i4></value></data></array></value>"
    properties = f"<value><struct><member><name>k</name>{spelling.format('v')}</member></struct></value>"
    parameters = (
        f"<value><array><data>{pair}</data></array></value></param><param>"
        f"<value><array><data>{values}</data></array></value></param><param>"
        f"{spelling.format('vm')}</param><param>{properties}"
    )
    assert read(call(parameters))[1] == [[["U", 2]], hosts, "vm", {"k": "v"}]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<ex:nil/>", None),
        ("<ex:i8>-7</ex:i8>", -7),
        ("<ex:i2>7</ex:i2>", 7),
        ("a<!-- -->b", "ab"),
        ("<![CDATA[<&>]]>", "<&>"),
        ("&lt;&#228;", "<ä"),
        ("", ""),
        # What Apache's client writes, and XML cannot hold.
        ("&#55357;&#56832;", "\U0001f600"),
        ("a&#60;&#55357;&#56832;&#56832;&#1;\x01\ufffe&lt;", "a<\U0001f600\ufffd\ufffd\ufffd\ufffd<"),
        ("&#9999999;", "\ufffd"),
        ("&#55357;<![CDATA[&#60;\x02]]>", "\ufffd&#60;\ufffd"),
    ],
)
def test_types_and_characters_of_the_standard_and_of_apaches_extensions(value: str, expected: Any) -> None:
    assert read(call(f"<value>{value}</value>"))[1] == [expected]
    assert value or read(call("<value/>"))[1] == [expected]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no xml",
        b"&#55357;&#56832;",
        call("<value>&#1;&</value>"),
        call("<value>&#1;</value>", "<!DOCTYPE methodCall>"),
        call("<value>\x01</value>").replace(b"\x01", b"\x01\xff"),
        b"<methodCall>",
        b"<methodCall/>",
        b"<other/>",
        call("<value><int>1.5</int></value>"),
        call("<value><int>1_0</int></value>"),
        call("<value><boolean>1</boolean></value>"),
        call("<value><what>1</what></value>"),
        call("<value><int>1</int><int>2</int></value>"),
        call("<array/>"),
        call("<value><array><data/><data/></array></value>"),
        call("<value><struct><member><name>a</name></member></struct></value>"),
        call("<value><dateTime.iso8601>20260101T00:00:00</dateTime.iso8601></value>"),
        call("<value><double>1.5</double></value>"),
        call("<value>a</value>", "<!DOCTYPE methodCall>"),
        call("<value>&x;</value>", "<!DOCTYPE methodCall [<!ENTITY x 'y'>]>"),
        call("<value>&x;</value>", "<!DOCTYPE methodCall [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"),
        call("<value><array><data>" * 100 + "</data></array></value>" * 100),
        call("<value><array><data>" + "<value/>" * 30_000 + "</data></array></value>"),
    ],
)
def test_what_is_no_call_is_a_fault(body: bytes) -> None:
    with pytest.raises(Fault):
        read(body)


# -- Mutated requests neither crash nor hang the proxy, show nobody a traceback, and leave its memory flat.
#: Requests in one run; FUZZ_REQUESTS raises it for a longer one.
REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "8000"))

#: Requests that each example sends, so that most of the time goes into the proxy.
BATCH = 100

MOST_GROWTH = 24 << 20

CALLS = [
    xmlrpc.client.dumps((["Keep"], ["h1", "h2"], "vm", {"k": "v"}), "runFilters"),
    xmlrpc.client.dumps(([["Weigh", 2]], ["h1", "h2"], "vm", {}), "runCostFunctions"),
    xmlrpc.client.dumps(("Move", ["h1", "h2"], {}), "runLoadBalancing"),
    xmlrpc.client.dumps((), "discover"),
]
#: Of HTTP, and of XML-RPC.
TOKENS = (
    *(b"\r\n\r\n", b"\r\n", b"Content-Length: 3\r\n", b"HTTP/1.0", b"0\r\n\r\n", b"Expect: 100-continue\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", *XML_TOKENS),
)


def request(chance: random.Random) -> bytes:
    """A request of the engine's, damaged in a few places; most often still with the right length."""
    body = chance.choice(CALLS).encode()
    if chance.random() < 0.8:
        body = damaged(body, TOKENS, chance)
    connection = "close" if chance.random() < 0.9 else "keep-alive"
    head = (
        f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml\r\n"
        f"Content-Length: {len(body)}\r\nConnection: {connection}\r\n\r\n".encode()
    )
    return (damaged(head, TOKENS, chance) if chance.random() < 0.2 else head) + body


def exchange(port: int, data: bytes) -> bytes:
    """Send the request, say that there is no more, and read until the proxy ends the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                received += part
        except ConnectionError:
            pass  # it was refused before it was sent in full
    return received


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    kept = units(Keep="return hosts")
    weighed = units("score", Weigh="return [(host, 1) for host in hosts]")
    moved = units("balance", Move="return '11111111-2222-3333-4444-555555555555', hosts")
    config = "[log]\nlevel = 'error'\n"
    with serving(tmp_path_factory.mktemp("fuzz"), config=config, units=kept + weighed + moved) as started:
        yield started


@pytest.mark.system
def test_mutated_requests(proxy: RunningProxy) -> None:
    process = psutil.Process(proxy.process.pid)
    sizes: list[int] = []

    @settings(
        max_examples=max(2, REQUESTS // BATCH),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**64 - 1))
    def attack(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(BATCH):
            answered = exchange(proxy.port, request(chance))
            assert b"Traceback" not in answered
            assert b'File "' not in answered
            assert answered == b"" or answered.startswith(b"HTTP/1.1 ")
        sizes.append(process.memory_info().rss)

    attack()
    assert proxy.filters(["Keep"], ["h1"])["result"] == ["h1"]
    assert "error of the proxy's own" not in proxy.log
    assert max(sizes[len(sizes) // 2 :]) - sizes[len(sizes) // 4] < MOST_GROWTH
