"""Speed of the proxy with a trivial unit, against a server that only echoes and the old proxy's way."""

from __future__ import annotations

import multiprocessing
import random
import socket
import statistics
import tempfile
import threading
import time
import xmlrpc.client
from pathlib import Path

import psutil

from ovirt_service.tables import table
from tests.proxy.running import RunningProxy, running, write_plugins

from .proxy_servers import PLUGINS, compared

#: Hosts in a call, and how many calls of each size are made of each server.
CALLS = {2: 1500, 100: 1000, 500: 500, 1000: 300, 5000: 80}
ROUNDS = 10
OLD_CALLS = 10
CLIENTS = 8
THROUGHPUT_SECONDS = 3.0
#: The kernel takes no command longer than this allows: beyond, the old way is a fault.
MOST_OLD_HOSTS = 1000

LATENCY_HEADERS = (
    *("hosts", "p50", "p99", "(a) p50", "(a) p99", "p50/(a)", "p99/(a)"),
    *("(b) p50", "(b)/p50", "client"),
)

CONFIG = """
[calls]
deadline_seconds = 8
"""


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


def hosts(count: int) -> list[str]:
    return [f"{number:08d}-aaaa-bbbb-cccc-{number:012d}" for number in range(count)]


def request(count: int, unit: str = "Trivial") -> bytes:
    parameters = ([unit], hosts(count), "vm", {"HighUtilization": "80"})
    return post(xmlrpc.client.dumps(parameters, "runFilters").encode())


def weighing(count: int) -> bytes:
    parameters = ([["Trivial", 1]], hosts(count), "vm", {"HighUtilization": "80"})
    return post(xmlrpc.client.dumps(parameters, "runCostFunctions").encode())


def post(body: bytes) -> bytes:
    head = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/xml\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = write_plugins(Path(directory) / "plugins", units=PLUGINS)
        with running(folder, config=CONFIG, shell="true") as ours, compared("echo", folder) as echo:
            with compared("old", folder) as old:
                _latency(ours.port, echo, old)
                _weights(ours.port, echo)
                _throughput(ours.port, echo, old)
            _killing(ours)
            _memory(ours)
        with running(folder, config=CONFIG, shell="true") as ours:
            _connecting(ours)


def quantiles(times: list[float]) -> tuple[float, float]:
    """p50 and p99 in milliseconds."""
    cuts = statistics.quantiles(times, n=100)
    return cuts[49] * 1e3, cuts[98] * 1e3


def _latency(ours: int, echo: int, old: int) -> None:
    rows = []
    for count, calls in CALLS.items():
        (mine, mine99), (theirs, theirs99) = _in_turns((ours, echo), request(count), calls)
        old50 = _old_p50(old, count)
        rows.append(
            [
                count,
                f"{mine:.3f}",
                f"{mine99:.3f}",
                f"{theirs:.3f}",
                f"{theirs99:.3f}",
                f"{mine / theirs:.2f}",
                f"{mine99 / theirs99:.2f}",
                f"{old50:.1f}" if old50 else "fault",
                f"{old50 / mine:.0f}" if old50 else "-",
                f"{_marshalling(count):.3f}",
            ]
        )
    print("runFilters, ms; (a) only echoes, (b) starts one process per unit and call")
    print("the client's marshalling is taken off, and is shown in the last column")
    print(table(rows, LATENCY_HEADERS))


def _weights(ours: int, echo: int) -> None:
    rows = []
    for count, calls in CALLS.items():
        (mine, mine99), (theirs, theirs99) = _in_turns((ours, echo), weighing(count), calls)
        row = (mine, mine99, theirs, theirs99)
        rows.append([count, *(f"{each:.3f}" for each in row), f"{mine / theirs:.2f}"])
    print("\nrunCostFunctions, ms")
    print(table(rows, ["hosts", "p50", "p99", "(a) p50", "(a) p99", "p50/(a)"]))


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


def _old_p50(port: int, count: int) -> float | None:
    if count > MOST_OLD_HOSTS:
        return None
    client = Client(port)
    times = [client.call(request(count, "Printing")) for _ in range(OLD_CALLS)]
    client.close()
    return statistics.median(times) * 1e3


def _marshalling(count: int) -> float:
    """What the standard library's client would spend on a call of this size, in milliseconds."""
    parameters = (["Trivial"], hosts(count), "vm", {"HighUtilization": "80"})
    answer = xmlrpc.client.dumps((hosts(count),), methodresponse=True)
    times = []
    for _ in range(10):
        started = time.perf_counter()
        xmlrpc.client.dumps(parameters, "runFilters")
        xmlrpc.client.loads(answer)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def _throughput(ours: int, echo: int, old: int) -> None:
    made = {port: _calls_per_second(port, unit) for port, unit in ((ours, "Trivial"), (echo, "Trivial"))}
    made[old] = _calls_per_second(old, "Printing")
    print(f"\ncalls per second, 2 hosts, {CLIENTS} client processes")
    row = [
        f"{made[ours]:.0f}",
        f"{made[echo]:.0f}",
        f"{made[ours] / made[echo]:.2f}",
        f"{made[old]:.0f}",
        f"{made[ours] / made[old]:.0f}",
    ]
    print(table([row], ["ours", "(a)", "ours/(a)", "(b)", "ours/(b)"]))


def _calls_per_second(port: int, unit: str) -> float:
    context = multiprocessing.get_context("spawn")
    counts: multiprocessing.Queue[int] = context.Queue()
    start = context.Barrier(CLIENTS)
    clients = [
        context.Process(target=_call_steadily, args=(port, unit, start, counts)) for _ in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    total = sum(counts.get() for _ in clients)
    for client in clients:
        client.join()
    return total / THROUGHPUT_SECONDS


def _call_steadily(
    port: int, unit: str, start: threading.Barrier, counts: multiprocessing.Queue[int]
) -> None:
    client, made = Client(port), request(2, unit)
    client.call(made)
    start.wait()
    expires = time.monotonic() + THROUGHPUT_SECONDS
    count = 0
    while time.monotonic() < expires:
        client.call(made)
        count += 1
    counts.put(count)


def _killing(ours: RunningProxy) -> None:
    """Latency while one worker is killed every second."""
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(1.0):
            random.choice(ours.workers()).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    client, made, times = Client(ours.port), request(2), []
    expires = time.monotonic() + 5
    while time.monotonic() < expires:
        times.append(client.call(made))
    stop.set()
    killer.join()
    p50, p99 = quantiles(times)
    print("\nrunFilters with 2 hosts while one worker is killed every second, ms")
    row = [f"{p50:.3f}", f"{p99:.3f}", f"{max(times) * 1e3:.3f}", len(times)]
    print(table([row], ["p50", "p99", "longest", "calls"]))


def _connecting(ours: RunningProxy) -> None:
    """Time to connect, and to have `discover` answered, while all workers hang."""
    idle = [Client(ours.port) for _ in range(64)]
    hanging = [threading.Thread(target=_hang, args=(ours.port, unit)) for unit in ("Hang", "HangToo") * 4]
    for thread in hanging:
        thread.daemon = True
        thread.start()
    time.sleep(1)
    discover = post(xmlrpc.client.dumps((), "discover").encode())
    connects, answers = [], []
    for _ in range(300):
        started = time.perf_counter()
        client = Client(ours.port)
        connects.append(time.perf_counter() - started)
        client.call(discover)
        answers.append(time.perf_counter() - started)
        client.close()
    for client in idle:
        client.close()
    print("\nwith 64 idle connections and all workers hanging, ms")
    rows = [
        [name, *(f"{each:.3f}" for each in quantiles(times))]
        for name, times in (("connect", connects), ("connect and discover", answers))
    ]
    print(table(rows, ["", "p50", "p99"]))


def _hang(port: int, unit: str) -> None:
    Client(port).call(request(2, unit))


def _memory(ours: RunningProxy) -> None:
    workers = ours.workers()
    unique = [worker.memory_full_info().uss / 2**20 for worker in workers]
    resident = [worker.memory_info().rss / 2**20 for worker in workers]
    zygote = psutil.Process(workers[0].ppid()).memory_full_info().uss / 2**20
    proxy = psutil.Process(ours.process.pid).memory_info().rss / 2**20
    print("\nmemory, MiB")
    row = [len(workers), f"{max(unique):.1f}", f"{max(resident):.1f}", f"{zygote:.1f}", f"{proxy:.1f}"]
    headers = ["idle workers", "own, each", "resident, each", "their zygote", "the proxy"]
    print(table([row], headers))
