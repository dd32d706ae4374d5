"""The server itself: addresses, TLS, kept-alive connections, many clients, and speed on a large engine."""

from __future__ import annotations

import gc
import socket
import threading
import weakref
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import ovirtsdk4
import pytest
import trustme

from ovirt_service.errors import UserError
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.builders import host, snapshot
from tests.proxy.running import eventually
from tests.scenarios.stage import START
from tests.simulator.http.plain import request


def test_tls(engine: Engine, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = certificate = (tmp_path / "chain.pem", tmp_path / "key.pem")
    for blob in issued.cert_chain_pems:
        blob.write_to_path(chain, append=True)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = serve(engine, certificate=certificate)
    assert server.url.startswith("https://")
    arguments = {"url": server.api_url, "username": "admin@internal", "password": "password"}
    trusting = ovirtsdk4.Connection(ca_file=str(tmp_path / "ca.pem"), **arguments)
    assert len(trusting.system_service().vms_service().list()) == 11
    trusting.close()
    with pytest.raises(ovirtsdk4.Error, match="SSL certificate"):
        ovirtsdk4.Connection(**arguments).system_service().get()
    server.close()


@pytest.mark.parametrize("listen", ["", "8080", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999", ":80"])
def test_an_address_that_is_none(engine: Engine, listen: str) -> None:
    with pytest.raises(UserError, match="HOST:PORT"):
        serve(engine, listen)


def test_a_certificate_that_is_none(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "chain.pem").write_text("nonsense")
    with pytest.raises(UserError, match="not a PEM certificate"):
        serve(engine, certificate=(tmp_path / "chain.pem", tmp_path / "key.pem"))


def loopback_of_the_sixth_version() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not loopback_of_the_sixth_version(), reason="no IPv6 here")
def test_an_address_of_the_sixth_version(engine: Engine) -> None:
    server = serve(engine, "[::1]:0")
    assert server.url.startswith("http://[::1]:")
    assert request(f"{server.api_url}/vms").status == 200
    server.close()


def test_an_address_that_is_taken(engine: Engine, server: Server) -> None:
    with pytest.raises(UserError, match="cannot listen on"):
        serve(engine, urlsplit(server.url).netloc)


def test_an_address_is_free_again_at_once(engine: Engine) -> None:
    """Though the connections that this side has ended linger on it."""
    first = serve(engine)
    with closing(HTTPConnection(urlsplit(first.url).netloc)) as connection:
        connection.request("GET", "/ovirt-engine/api/vms")
        connection.getresponse().read()
        first.close()
    second = serve(engine, urlsplit(first.url).netloc)
    assert request(f"{second.api_url}/vms").status == 200
    second.close()


def test_a_closed_server_is_gone(engine: Engine) -> None:
    before = set(threading.enumerate())
    server = serve(engine)
    (serving,) = set(threading.enumerate()) - before
    server.close()
    assert not serving.is_alive()
    with pytest.raises(ConnectionError):
        request(f"{server.api_url}/vms")


def test_a_connection_is_kept_alive(server: Server) -> None:
    parts = urlsplit(server.url)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    sockets = set()
    for _ in range(5):
        connection.request("GET", "/ovirt-engine/api/vms")
        connection.getresponse().read()
        sockets.add(connection.sock)
    assert len(sockets) == 1
    assert None not in sockets
    connection.close()


def test_many_clients_at_once(engine: Engine, server: Server) -> None:
    """Readers, writers and the clock together: every answer is whole."""
    failures: list[object] = []

    def read() -> None:
        for _ in range(10):
            reply = request(f"{server.api_url}/vms?follow=statistics")
            if reply.status != 200 or len(reply.xml) != 11:
                failures.append(reply)

    def write() -> None:
        for _ in range(10):
            request(f"{server.api_url}/vms/spare/start", "POST", "<action/>")
            engine.advance(60)
            request(f"{server.api_url}/vms/spare/stop", "POST", "<action/>")
            engine.advance(60)

    threads = [threading.Thread(target=each) for each in (read, read, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("path", ["affinitylabels", "vms/web1/tags", "roles"])
def test_max_cuts_every_list(server: Server, path: str) -> None:
    whole = len(request(f"{server.api_url}/{path}").xml)
    assert whole > 1
    assert [len(request(f"{server.api_url}/{path}?max={most}").xml) for most in (1, 0, -1)] == [1, 0, whole]
    assert request(f"{server.api_url}/{path}?max=-2").status == 500


@pytest.mark.system
def test_what_a_closed_server_served_is_forgotten() -> None:
    engine = Engine.from_snapshot(snapshot(host("h1")), clock=START)
    known = weakref.ref(engine)
    serve(engine).close()
    del engine

    def is_forgotten() -> bool:
        gc.collect()  # does nothing while another thread collects
        return known() is None

    eventually(is_forgotten, what="the end of the engine")
