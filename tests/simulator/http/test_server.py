"""The server itself: addresses, TLS, kept-alive connections, many clients, and speed on a large engine."""

import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ovirtsdk4
import pytest
import trustme
from werkzeug import Request, Response

from ovirt_placement.model import SchedulingPolicy
from ovirt_service.errors import UserError
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Control, Tokens, default_users
from ovirt_simulator.http.server import Server, serve
from tests.builders import cluster, host, snapshot, vm
from tests.scenarios.stage import START
from tests.simulator.http.conftest import logged_in
from tests.simulator.http.plain import Api, request
from tests.simulator.scheduler.proxy import reply, running_proxy


def test_tls(engine: Engine, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = certificate = (tmp_path / "chain.pem", tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(chain)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with closing(serve(engine, certificate=certificate)) as server:
        assert server.url.startswith("https://")
        with closing(logged_in(server, ca_file=str(tmp_path / "ca.pem"))) as trusting:
            assert len(trusting.system_service().vms_service().list()) == 11
        with pytest.raises(ovirtsdk4.Error, match="SSL certificate"):
            logged_in(server).system_service().get()


def test_what_cannot_be_served(engine: Engine, server: Server, tmp_path: Path) -> None:
    for listen in ("", "8080", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999", ":80"):
        with pytest.raises(UserError, match="HOST:PORT"):
            serve(engine, listen)
    with pytest.raises(UserError, match="cannot listen on"):
        serve(engine, urlsplit(server.url).netloc)
    (tmp_path / "chain.pem").write_text("nonsense")
    with pytest.raises(UserError, match="not a PEM certificate"):
        serve(engine, certificate=(tmp_path / "chain.pem", tmp_path / "key.pem"))


def test_an_address_of_the_sixth_version(engine: Engine) -> None:
    with closing(serve(engine, "[::1]:0")) as server:
        assert server.url.startswith("http://[::1]:")
        assert request(f"{server.api_url}/vms").status == 200


def test_an_address_is_free_again_at_once(engine: Engine) -> None:
    """Though the connections that this side has ended linger on it."""
    first = serve(engine)
    with closing(HTTPConnection(urlsplit(first.url).netloc)) as connection:
        connection.request("GET", "/ovirt-engine/api/vms")
        connection.getresponse().read()
        first.close()
    with closing(serve(engine, urlsplit(first.url).netloc)) as second:
        assert request(f"{second.api_url}/vms").status == 200


def test_a_closed_server_is_gone(engine: Engine) -> None:
    before = set(threading.enumerate())
    server = serve(engine)
    (serving,) = set(threading.enumerate()) - before
    server.close()
    assert not serving.is_alive()
    with pytest.raises(ConnectionError):
        request(f"{server.api_url}/vms")


def test_many_clients_at_once(engine: Engine, api: Api) -> None:
    """Readers, writers and the clock together: every answer is whole."""

    def read() -> set[tuple[int, int]]:
        replies = [api("vms?follow=statistics") for _ in range(10)]
        return {(reply.status, len(reply.xml)) for reply in replies}

    def write() -> None:
        for _ in range(10):
            for command in ("start", "stop"):
                api(f"vms/spare/{command}", "POST", "<action/>")
                engine.advance(60)

    with ThreadPoolExecutor(4) as clients:
        found = [clients.submit(read) for _ in range(3)]
        clients.submit(write).result()
    assert [one.result() for one in found] == [{(200, 11)}] * 3


def test_a_body_may_come_in_pieces(server: Server) -> None:
    with closing(HTTPConnection(urlsplit(server.url).netloc)) as connection:
        pieces = iter([b"<affinity_label>", b"<name>new</name>", b"</affinity_label>"])
        headers = dict([LOG_IN.strip().split(": "), ("Content-Type", "application/xml")])
        connection.request("POST", "/ovirt-engine/api/affinitylabels", pieces, headers, encode_chunked=True)
        assert connection.getresponse().status == 201


@pytest.mark.parametrize("path", ["affinitylabels", "vms/web1/tags", "roles"])
def test_max_cuts_every_list(api: Api, path: str) -> None:
    whole = len(api(path).xml)
    assert whole > 1
    assert [len(api(f"{path}?max={most}").xml) for most in (1, 0, -1)] == [1, 0, whole]
    assert api(f"{path}?max=-2").status == 500


# -- What waits while all threads of the engine are taken: as behind Undertow, nothing is refused or dropped.
# Source: XNIO's worker, which queues tasks without a limit, and Undertow's listeners, which accept at once.
LOG_IN = f"Authorization: Basic {b64encode(b'admin@internal:password').decode()}\r\n"
#: So long it is seen that no answer comes, and so long one that is due is waited for.
SHORT_SECONDS, LONG_SECONDS = 0.2, 30.0


@contextmanager
def held_start(threads: int) -> Iterator[tuple[Server, threading.Event]]:
    """An engine with this many threads, in which a start waits for the proxy until that is released."""
    policy = SchedulingPolicy(filters=("NoHost",))
    state = snapshot(cluster(scheduling_policy=policy), host("h1"), vm("idle"))
    with ExitStack() as stack:
        proxy = stack.enter_context(running_proxy())
        proxy.discover = lambda: {"filters": {"NoHost": ["Takes no host", ""]}}
        asked, released = threading.Event(), threading.Event()

        def held(*_: object) -> dict[str, Any]:
            asked.set()
            released.wait(LONG_SECONDS)
            return reply([])

        proxy.run_filters = held
        engine = Engine.from_snapshot(state, clock=START, settings=PROMPT, proxy=proxy.url)
        server = serve(engine, threads=threads)
        stack.callback(server.close)
        stack.callback(released.set)
        stack.enter_context(sent(server, "POST", "vms/idle/start", "<action/>"))
        assert asked.wait(LONG_SECONDS)
        yield server, released


def connected(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=LONG_SECONDS)


def sent(server: Server, method: str, path: str, body: str = "") -> socket.socket:
    """Send a request, and leave its answer for later."""
    connection = connected(server)
    connection.sendall(
        f"{method} /ovirt-engine/api/{path} HTTP/1.1\r\nHost: engine\r\n{LOG_IN}"
        f"Content-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    return connection


def status(connection: socket.socket) -> bytes:
    return connection.recv(12).removeprefix(b"HTTP/1.1 ")


def test_a_start_holds_its_thread_until_it_is_scheduled() -> None:
    with held_start(threads=1) as (server, released), sent(server, "GET", "vms") as reader:
        reader.settimeout(SHORT_SECONDS)
        with pytest.raises(TimeoutError):
            status(reader)
        released.set()
        reader.settimeout(LONG_SECONDS)
        assert status(reader) == b"200"


def test_another_thread_answers_meanwhile() -> None:
    with held_start(threads=2) as (server, released), sent(server, "GET", "vms") as reader:
        assert status(reader) == b"200"
        assert not released.is_set()


def test_connections_that_bring_no_request_hold_no_thread(engine: Engine) -> None:
    with closing(serve(engine, threads=1)) as server, connected(server) as silent:
        assert request(f"{server.api_url}/vms").status == 200
        silent.settimeout(SHORT_SECONDS)
        with pytest.raises(TimeoutError):
            silent.recv(1)


def test_connections_are_kept_however_many(engine: Engine) -> None:
    with closing(serve(engine, threads=1)) as server, ExitStack() as stack:
        netloc = urlsplit(server.url).netloc
        connections = [stack.enter_context(closing(HTTPConnection(netloc))) for _ in range(30)]
        sockets = set()
        for connection in connections * 2:
            connection.request("POST", "/ovirt-engine/services/sso-logout")
            reply = connection.getresponse()
            reply.read()
            assert (reply.status, reply.getheader("Connection")) == (200, None)
            sockets.add(connection.sock)
        assert len(sockets - {None}) == len(connections)


def test_of_more_clients_than_threads_as_many_are_answered_at_once_and_then_the_others(
    engine: Engine,
) -> None:
    busy, gate = threading.Semaphore(0), threading.Event()
    answered = []

    def answer(request: Request) -> Response:
        busy.release()
        gate.wait(LONG_SECONDS)
        answered.append(threading.current_thread().name)
        return Response()

    control = Control(Tokens(default_users("password"), 60.0), engine)
    server = Server(answer, control, "127.0.0.1:0", None, threads=4)
    with closing(server), ExitStack() as stack:
        clients = [stack.enter_context(sent(server, "GET", f"vms/{number}")) for number in range(300)]
        assert all(busy.acquire(timeout=LONG_SECONDS) for _ in range(4))
        assert not busy.acquire(timeout=SHORT_SECONDS)
        gate.set()
        assert {status(client) for client in clients} == {b"200"}
    assert (len(answered), len(set(answered))) == (300, 4)


def test_servers_end_at_once(engine: Engine) -> None:
    """Within the time that a quick test may take: each would wait half a second for its interval."""
    for _ in range(20):
        with closing(serve(engine)) as server, connected(server):
            assert request(f"{server.api_url}/vms").status == 200


def test_a_server_ends_though_a_client_has_sent_half_a_request(engine: Engine) -> None:
    with closing(serve(engine)) as server:
        half = connected(server)
        half.sendall(b"GET /ovirt-engine/api HTTP/1.1\r\n")
        assert request(f"{server.api_url}/vms").status == 200
    with half:
        half.settimeout(LONG_SECONDS)
        assert b"200 OK" not in half.recv(100)
