"""The client of the external scheduler on the wire: what a Java client takes, and what it chokes on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ovirt_placement.model import SchedulingPolicy
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.scheduler.external import ExternalScheduler, ExternalUnits, Malformed, Unreachable
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.weights import Record
from tests.builders import cluster, host, snapshot, vm
from tests.scenarios.stage import START

REPLY = (
    "<?xml version='1.0'?><methodResponse><params><param><value><struct>"
    "<member><name>result_code</name><value><int>0</int></value></member>"
    "<member><name>result</name><value><array><data><value><array><data><value>h1</value>"
    "<value><{kind}>7</{kind}></value></data></array></value></data></array></value></member>"
    "</struct></value></param></params></methodResponse>"
)


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Serve one connection: read the request, send these bytes, hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                request = b""
                while b"</methodCall>" not in request:
                    request += connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(20)


def http(body: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def weighed(answer: str) -> list[Record]:
    """The weights of one unit, as the scheduler takes them from this answer."""
    policy = SchedulingPolicy(weights={"W": 1})
    state = snapshot(cluster(scheduling_policy=policy), host("h1"), vm("v"))
    backend = Engine.from_snapshot(state, clock=START)._backend
    with answering(http(answer)) as url:
        units = ExternalUnits(backend, ExternalScheduler(url))
        known = backend.state
        (only,) = known.clusters.values()
        return units.weigh(Request(vm_ids=("v",)), only, tuple(known.hosts.values()))


@pytest.mark.parametrize("kind", ["int", "i4"])
def test_32_bit_weights_are_taken(kind: str) -> None:
    assert weighed(REPLY.format(kind=kind)) == [Record(None, "h1", 7)]


@pytest.mark.parametrize("kind", ["i8", "double", "string", "boolean"])
def test_any_other_weight_is_malformed(kind: str) -> None:
    body = REPLY.format(kind=kind).replace("<boolean>7<", "<boolean>1<")
    with pytest.raises(Malformed):
        weighed(body)


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", http("<html>"), http("no XML at all")]
)
def test_what_is_no_xml_rpc_is_no_answer(answer: bytes) -> None:
    with answering(answer) as url, pytest.raises(Unreachable):
        ExternalScheduler(url).ask("runFilters", ["F"], ["h1"], "v", {})


def test_an_answer_that_takes_too_long_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(Unreachable):
            ExternalScheduler(url, reply_seconds=0.05).ask("discover")
