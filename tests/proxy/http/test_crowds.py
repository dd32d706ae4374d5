"""Who crowds the proxy does not keep out who calls: room for connections, users, file descriptors."""

import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import xmlrpc.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from ovirt_scheduler_proxy.http import ask_kernel, user_of
from tests.proxy.http.test_http import BODY, PLUGINS, Wire, wires
from tests.proxy.running import RunningProxy, eventually, handing_over, running, serving, units, write_plugins

pytestmark = pytest.mark.system
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


@pytest.mark.timing
def test_a_client_that_calls_stays_and_the_silent_make_room(proxy: RunningProxy) -> None:
    with wires(proxy.port, 1) as (caller,):
        assert caller.call().status == 200
        with wires(proxy.port, 3 * MOST) as silent:
            assert [caller.call().status for _ in range(2)] == [200, 200]
            with wires(proxy.port, 1) as (newcomer,):
                assert newcomer.call().status == 200
            assert silent[0].closed()


@pytest.mark.timing
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


@pytest.mark.timing
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


@pytest.mark.timing
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


@pytest.mark.timing
@as_root
def test_a_user_that_is_named_may_call(tmp_path: Path) -> None:
    config = f'[server]\nallowed_users = ["{NO_VMS}", "no-such-user"]\n'
    with serving(tmp_path, config=config, units=PLUGINS) as proxy, stranger(proxy, CALL) as named:
        assert named.readline() == "200\n"


@pytest.mark.timing
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


# -- Clients that are allowed to call and are slow at it hold up neither other clients nor the end.
#: What must not be waited for takes as long as this; a test that waits for it fails.
LONG = 110
SOON = 30

PATIENT = f"""
[server]
most_connections = {MOST}
request_seconds = {LONG}
idle_seconds = {LONG}
body_mib = 16
[calls]
deadline_seconds = {LONG}
"""

#: The kernel takes some MiB of an answer that nobody reads.
MANY = [f"{'h' * 990}{number}" for number in range(10_000)]
LARGE = xmlrpc.client.dumps((["Keep"], MANY, "vm", {}), "runFilters").encode()


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[RunningProxy]:
    with serving(tmp_path, config=PATIENT, units=PLUGINS) as started:
        yield started


@contextmanager
def narrow(port: int, count: int = 1) -> Iterator[list[Wire]]:
    """Clients whose machine takes little of an answer before it is read, and that have asked for much."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            wire = Wire.__new__(Wire)
            wire.socket = socket.socket()
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.socket.settimeout(SOON)
            wire.socket.connect(("127.0.0.1", port))
            wire._stream = wire.socket.makefile("rb")
            found.append(stack.enter_context(closing(wire)))
            wire.post(LARGE)
        yield found


def half(wire: Wire) -> None:
    wire.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10")


def calls(proxy: RunningProxy) -> float:
    return proxy.metrics().get(("calls_total", "runFilters", "ok"), 0)


def test_the_end_waits_neither_for_readers_nor_for_senders(slow: RunningProxy) -> None:
    with narrow(slow.port), wires(slow.port, 2) as (sender, _):
        half(sender)
        eventually(lambda: calls(slow) == 1)
        slow.process.send_signal(signal.SIGTERM)
        assert slow.process.wait(SOON) == 0
        slow.kill()


def test_an_answer_that_is_read_at_the_end_comes_whole(slow: RunningProxy) -> None:
    with narrow(slow.port) as (reader,):
        eventually(lambda: calls(slow) == 1)
        slow.process.send_signal(signal.SIGTERM)
        assert reader.receive().value["result"] == MANY
        assert reader.closed()
        assert slow.process.wait(SOON) == 0
        slow.kill()


def test_answers_that_are_not_read_delay_no_others(slow: RunningProxy) -> None:
    with narrow(slow.port, MOST), wires(slow.port, 1) as (newcomer,):
        newcomer.socket.settimeout(SOON)
        assert newcomer.call().status == 200


def test_a_caller_that_rests_keeps_its_connection_while_others_crowd(slow: RunningProxy) -> None:
    with ExitStack() as stack:
        (caller,) = stack.enter_context(wires(slow.port, 1))
        assert caller.call().status == 200
        for _ in range(3):
            for wire in stack.enter_context(wires(slow.port, 3 * MOST)):
                half(wire)
            with wires(slow.port, 1) as (newcomer,):
                newcomer.socket.settimeout(SOON)
                answer = newcomer.call("Connection: close")
                assert answer.status == 200, "all that came before it had to make room"
        assert caller.call().status == 200


def test_who_does_not_read_gets_no_further_answers(slow: RunningProxy) -> None:
    with narrow(slow.port) as (reader,):
        for _ in range(50):
            reader.post(BODY)
        eventually(lambda: calls(slow) > 0)
        for _ in range(20):
            assert slow.filters(["Keep"], ["h1"])["result"] == ["h1"]
        assert calls(slow) == 1 + 20
        assert reader.receive().value["result"] == MANY
        for _ in range(50):
            assert reader.receive().value["result"] == ["h1", "h2"]


@pytest.mark.timing
def test_a_request_that_begins_after_a_long_rest_has_its_whole_time(tmp_path: Path) -> None:
    config = f"[server]\nrequest_seconds = 2\nidle_seconds = {LONG}\n"
    with serving(tmp_path, config=config, units=PLUGINS) as proxy, wires(proxy.port, 1) as (wire,):
        assert wire.call().status == 200
        wire.socket.settimeout(2.5)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\n")
        wire.socket.settimeout(0.8)  # looks for slow clients are half a second apart
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.send(b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
        wire.socket.settimeout(SOON)
        assert wire.socket.recv(4096).startswith(b"HTTP/1.1 200 ")


# -- A restart under systemd's socket refuses nobody: who calls meanwhile waits, and is answered.
RESTARTED = "import time\n" + units(
    Keep="return hosts", Hang='open(args["begun"], "w").close()\ntime.sleep(600)'
)

RESTARTING = "[calls]\ndeadline_seconds = 2\n"


@pytest.mark.timing
def test_no_connection_is_refused_and_no_call_lost_by_a_restart(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", units=RESTARTED)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server, ThreadPoolExecutor(2) as clients:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        over = threading.Event()
        answered: list[list[str]] = []

        def call() -> None:
            while not over.is_set():
                with xmlrpc.client.ServerProxy(f"http://{listen}/") as client:
                    answered.append(client.runFilters(["Keep"], ["h1"], "vm", {})["result"])  # type: ignore[call-overload,index]

        def run() -> None:
            before = len(answered)
            given = {"listen": listen, "config": RESTARTING, "shell": handing_over(server)}
            with running(folder, pass_fds=[server.fileno()], **given) as proxy:  # type: ignore[arg-type]
                eventually(lambda: len(answered) > before + 20)
                begun = tmp_path / "begun"
                hanging = clients.submit(proxy.filters, ["Hang"], ["h1"], {"begun": str(begun)})
                eventually(begun.exists)
                begun.unlink()
                proxy.process.send_signal(signal.SIGTERM)
                assert proxy.process.wait(30) == 0, proxy.log
                proxy.kill()
            assert hanging.result()["result"] == ["h1"]

        calling = clients.submit(call)
        try:
            run()
            run()
        finally:
            over.set()
        with running(folder, listen=listen, shell=handing_over(server), pass_fds=[server.fileno()]):
            calling.result(30)
    assert set(map(tuple, answered)) == {("h1",)}


@pytest.mark.timing
def test_a_socket_that_the_configuration_does_not_name_is_refused(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", units=RESTARTED)
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = running(folder, listen="127.0.0.1:1", shell=handing_over(server), pass_fds=[server.fileno()])
        with pytest.raises(RuntimeError, match="socket agree with it"), given:
            pass
