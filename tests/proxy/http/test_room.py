"""Who crowds the proxy does not keep out who calls: room for connections, users, file descriptors."""

import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

from ovirt_scheduler_proxy.http import ask_kernel, user_of

from ..running import RunningProxy, eventually, serving
from .test_http import BODY, PLUGINS, wires

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

MOST = 40

CONFIG = f"""
[server]
most_connections = {MOST}
[log]
level = "warning"
"""

NO_VMS = 65534

#: Becomes somebody else, asks again and again until it is ended, and prints the status of each answer.
STRANGER = """
import contextlib, os, socket, sys
os.setuid(int(sys.argv[1]))
while True:
    with contextlib.suppress(ConnectionError), socket.socket() as connection:
        connection.connect(("127.0.0.1", int(sys.argv[2])))
        connection.sendall(sys.argv[3].encode())
        answer = connection.recv(4096).split()
        if answer:  # else it had to make room before it could send
            print(answer[1].decode(), flush=True)
"""

METRICS = "GET /metrics HTTP/1.0\r\n\r\n"
CALL = f"POST / HTTP/1.0\r\nContent-Type: text/xml\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY.decode()}"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[RunningProxy]:
    with serving(tmp_path, config=CONFIG, units=PLUGINS) as started:
        yield started


def test_a_client_that_calls_stays_and_the_silent_make_room(proxy: RunningProxy) -> None:
    with wires(proxy.port, 1) as (caller,):
        assert caller.call().status == 200
        with wires(proxy.port, 3 * MOST) as silent:
            assert [caller.call().status for _ in range(2)] == [200, 200]
            with wires(proxy.port, 1) as (newcomer,):
                assert newcomer.call().status == 200
            assert silent[0].closed()


def test_a_thousand_calls_at_once_are_all_answered(proxy: RunningProxy) -> None:
    request = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
    )
    clients = [socket.create_connection(("127.0.0.1", proxy.port), timeout=60) for _ in range(1000)]
    received = dict.fromkeys(clients, b"")
    with selectors.DefaultSelector() as waiting:
        for client in clients:
            client.sendall(request)
            waiting.register(client, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select(30):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                part = client.recv(65536)
                received[client] += part
                if not part:
                    waiting.unregister(client)
                    client.close()
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in received.values())


def test_the_kernel_reports_whose_a_connection_is() -> None:
    kernel = ask_kernel()
    assert kernel is not None
    for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        with socket.create_server((host, 0), family=family) as server:
            client = socket.create_connection(server.getsockname()[:2])
            accepted, _ = server.accept()
            assert user_of(accepted, kernel) == os.geteuid()
            client.close()
            assert user_of(accepted, kernel) is None, "a socket that nobody holds any more is not root's"
            accepted.close()
    kernel.close()


@contextmanager
def stranger(proxy: RunningProxy, request: str) -> Iterator[IO[str]]:
    """Another user who makes this request in a loop: the statuses that he gets."""
    command = [sys.executable, "-c", STRANGER, str(NO_VMS), str(proxy.port), request]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout
        process.kill()


@as_root
def test_other_users_of_this_machine_may_read_metrics_and_nothing_else(proxy: RunningProxy) -> None:
    with ExitStack() as stack:
        reader = stack.enter_context(stranger(proxy, METRICS))
        callers = [stack.enter_context(stranger(proxy, CALL)) for _ in range(6)]
        assert reader.readline() == "200\n"
        assert {caller.readline() for caller in callers} == {"403\n"}
        for _ in range(20):
            started = time.monotonic()
            assert proxy.filters(["Keep"], ["h1"])["result"] == ["h1"]
            assert time.monotonic() - started < 1
    eventually(lambda: f"calls of uid {NO_VMS} are refused" in proxy.log)
    assert proxy.log.count(f"calls of uid {NO_VMS}") == 1


@as_root
def test_a_user_that_is_named_may_call(tmp_path: Path) -> None:
    config = f'[server]\nallowed_users = ["{NO_VMS}", "no-such-user"]\n'
    with serving(tmp_path, config=config, units=PLUGINS) as proxy, stranger(proxy, CALL) as named:
        assert named.readline() == "200\n"


def test_few_file_descriptors_cost_connections_and_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path, shell="ulimit -n 64", units=PLUGINS) as proxy:
        with wires(proxy.port, 100):
            for worker in proxy.workers():
                worker.kill()
        with ThreadPoolExecutor(4) as clients:
            answers = list(clients.map(lambda _: proxy.filters(["Keep"], ["h1"])["result_code"], range(40)))
        eventually(lambda: len(proxy.workers()) >= 4)
        assert proxy.filters(["Keep"], ["h1"])["result_code"] == 0
        assert answers.count(0) > 30
        assert "only 64 file descriptors are allowed" in proxy.log
        assert len(proxy.log) < 20_000
