"""Speed of the proxy with a trivial unit, against a server that only echoes."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from ovirt_service.text.tables import table
from tests.proxy.running import running, write_plugins
from tools.stage import TRIVIAL, quantiles

#: Hosts in a call, and how many calls of each size are made of each server.
CALLS = {2: 1500, 100: 1000, 500: 500, 1000: 300, 5000: 80}
ROUNDS = 10
HEADERS = ("method", "hosts", "p50", "p99", "echo p50", "echo p99", "p50/echo", "p99/echo")


class Client:
    """Sends a call marshalled before and reads the answer unparsed, so that only the server is timed."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, request: bytes) -> float:
        """Seconds from the first byte sent to the last one received."""
        started = time.perf_counter()
        self._socket.sendall(request)
        received = self._socket.recv(1 << 20)
        while b"\r\n\r\n" not in received:
            received += self._socket.recv(1 << 20)
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        missing = length - len(body)
        while missing > 0:
            missing -= len(self._socket.recv(1 << 20))
        return time.perf_counter() - started

    def close(self) -> None:
        self._socket.close()


def asked(method: str, units: tuple[str, ...], hosts: list[str], vm: str) -> bytes:
    """A call as the engine makes it."""
    named: list[Any] = list(units) if method == "runFilters" else [[unit, 1] for unit in units]
    body = xmlrpc.client.dumps((named, hosts, vm, {"HighUtilization": "80"}), method).encode()
    head = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = write_plugins(Path(name) / "plugins", units=TRIVIAL)
        with running(folder, shell="true") as ours, _echoing() as echo:
            _latency(ours.port, echo)


def _request(method: str, count: int) -> bytes:
    unit = "TrivialFilter" if method == "runFilters" else "TrivialWeight"
    hosts = [f"{number:08d}-aaaa-bbbb-cccc-{number:012d}" for number in range(count)]
    return asked(method, (unit,), hosts, "vm")


def _latency(ours: int, echo: int) -> None:
    rows = []
    for method in ("runFilters", "runCostFunctions"):
        for count, calls in CALLS.items():
            times = _in_turns((ours, echo), _request(method, count), calls)
            (mine, mine99), (theirs, theirs99) = times
            shown = [f"{each:.3f}" for pair in times for each in pair]
            rows.append([method, count, *shown, f"{mine / theirs:.2f}", f"{mine99 / theirs99:.2f}"])
    print("ms; the client's marshalling is not counted")
    print(table(rows, HEADERS))


def _in_turns(ports: tuple[int, ...], made: bytes, calls: int) -> list[tuple[float, float]]:
    """The quantiles of each server, called in turns, so that a busy machine is busy for all."""
    clients = [Client(port) for port in ports]
    times: list[list[float]] = [[] for _ in ports]
    for client in clients:
        for _ in range(10):
            client.call(made)
    for _ in range(ROUNDS):
        for client, its in zip(clients, times, strict=True):
            its += [client.call(made) for _ in range(calls // ROUNDS)]
    for client in clients:
        client.close()
    return [quantiles(its) for its in times]


class _KeepAlive(SimpleXMLRPCRequestHandler):
    protocol_version = "HTTP/1.1"


class _Threaded(ThreadingMixIn, SimpleXMLRPCServer):
    daemon_threads = True


def _echo_hosts(_: list[str], hosts: list[str], __: str, ___: dict[str, str]) -> list[str]:
    return hosts


def _echo_weights(units: list[list[Any]], hosts: list[str], _: str, __: dict[str, str]) -> list[list[Any]]:
    return [[host, 0, unit] for unit, _ in units for host in hosts]


def serve() -> None:
    """Echo for ever, and print the port."""
    server = _Threaded(("127.0.0.1", 0), requestHandler=_KeepAlive, logRequests=False)
    server.register_function(_echo_hosts, "runFilters")
    server.register_function(_echo_weights, "runCostFunctions")
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def _echoing() -> Iterator[int]:
    """Run a server that only echoes; gives its port."""
    command = [sys.executable, "-m", "tools.benchmarks.proxy"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else 0)
        finally:
            process.terminate()


if __name__ == "__main__":
    serve()
