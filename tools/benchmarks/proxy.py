"""Speed of the proxy: trivial units against a server that only echoes, and decisions against trivial units.

What workers hold, and what it costs that they are killed, the soak shows (`tests.endurance.soak`).
"""

import random
import socket
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, cycle
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any, NamedTuple
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.publication import Wake, ask, ask_moments, now
from ovirt_service.text import table
from tests.proxy import running as proxies
from tools.stage import INVENTORY_USER, TRIVIAL, WORKERS_USER, Stage, quantiles, records_table, running

#: Hosts in a call, and how many calls of each size are made of each server.
CALLS_BY_HOSTS = {2: 1500, 100: 1000, 500: 500, 1000: 300, 5000: 80}
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


def compare_with_echo() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = proxies.write_plugins(Path(name) / "plugins", units=TRIVIAL)
        with proxies.running(folder, shell="true") as ours, _echoing() as echo:
            _latency(ours.port, echo)


def _latency(ours: int, echo: int) -> None:
    rows = []
    for method, unit in (("runFilters", "TrivialFilter"), ("runCostFunctions", "TrivialWeight")):
        for count, calls in CALLS_BY_HOSTS.items():
            hosts = [f"{number:08d}-aaaa-bbbb-cccc-{number:012d}" for number in range(count)]
            times = _in_turns((ours, echo), asked(method, (unit,), hosts, "vm"), calls)
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


def _echo_weights(units: Any, hosts: Any, _: Any, __: Any) -> Any:
    return [[host, 0, unit] for unit, _ in units for host in hosts]


def serve() -> None:
    """Echo for ever, and print the port."""
    server = _Threaded(("127.0.0.1", 0), requestHandler=_KeepAlive, logRequests=False)
    server.register_function(lambda _, hosts, *__: hosts, "runFilters")
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


# -- decisions on a large cluster that never rests
FILTERS = ("AffinityFilter", "HostAffinityFilter")
WEIGHTS = ("SoftAffinityWeight", "HostAffinityWeight", "HaReservationWeight")

#: The calls that are compared: method and units. The first of each method is the measure of the others.
CALLS = (
    ("runFilters", ("TrivialFilter",)),
    *(("runFilters", (unit,)) for unit in FILTERS),
    ("runFilters", FILTERS),
    ("runCostFunctions", ("TrivialWeight",)),
    *(("runCostFunctions", (unit,)) for unit in WEIGHTS),
    ("runCostFunctions", WEIGHTS),
)
Call = tuple[str, tuple[str, ...]]

#: Long enough for p99.
WINDOW_SECONDS = 20.0
#: A decision every so often, as an engine makes them: a version of the inventory may come in between.
PACE_SECONDS = 0.05
#: About how many VMs each call is made, again and again.
VMS = 200


class Sample(NamedTuple):
    call: Call
    seconds: float
    #: Whether what was published was young enough for a decision when the call was made.
    fresh: bool


def compare_with_trivial() -> None:
    with running(proxy=True) as stage, stage.churning():
        _warm_up(stage)
        _decisions("one after another", stage, pause=0.0)
        _decisions(f"one every {PACE_SECONDS * 1e3:.0f} ms", stage, pause=PACE_SECONDS)


def _warm_up(stage: Stage) -> None:
    """Make each call once and look at its answer: what follows measures decisions and not failures."""
    vm = next(group.vms[0] for group in stage.snapshot.affinity_groups if group.vms)
    with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{stage.port}") as proxy:
        for method, units in CALLS:
            named = list(units) if method == "runFilters" else [[unit, 1] for unit in units]
            answer = getattr(proxy, method)(named, stage.hosts, vm, {})
            if answer["result_code"] != 0:
                raise RuntimeError(f"{method} {units}: {answer['plugin_errors']}")


def _decisions(title: str, stage: Stage, pause: float) -> None:
    """Make all calls in turns, about VMs with groups, while the engine is busy."""
    dice = random.Random(2)
    vms = dice.sample(list(chain.from_iterable(stage.snapshot.group_vms.values())), VMS)
    requests = {call: [asked(*call, stage.hosts, vm) for vm in vms] for call in CALLS}
    before, events, seen = stage.requests(), stage.last_event(), _Seen(stage)
    samples: list[Sample] = []
    client, began = Client(stage.port), time.monotonic()
    for turn in cycle(range(VMS)):
        passed = time.monotonic() - began
        if passed > WINDOW_SECONDS:
            break
        for call in CALLS:
            fresh = seen.look()
            samples.append(Sample(call, client.call(requests[call][turn]), fresh))
            time.sleep(pause)
    client.close()
    print(f"\ndecisions {title}, {VMS} VMs, {len(stage.hosts)} hosts, ms")
    _print_decisions(samples)
    decisions = [sample for sample in samples if not sample.call[1][0].startswith("Trivial")]
    after = stage.requests()
    made = {user: after[user] - before[user] for user in (INVENTORY_USER, WORKERS_USER)}
    row = {
        "decisions": len(decisions),
        "p99, ms": f"{quantiles([sample.seconds for sample in decisions])[1]:.1f}",
        "of these on a fresh snapshot": f"{sum(sample.fresh for sample in decisions) / len(decisions):.0%}",
        "requests of workers for each": f"{made[WORKERS_USER] / len(decisions):.4f}",
        "of the inventory a second": f"{made[INVENTORY_USER] / passed:.1f}",
        "events a second": f"{(stage.last_event() - events) / passed:.0f}",
        "versions a second": f"{seen.versions / passed:.1f}",
    }
    print(records_table([row]))


class _Seen:
    """What the inventory publishes, as a reader sees it."""

    def __init__(self, stage: Stage) -> None:
        self._directory = stage.config.inventory.directory
        self._version = 0
        #: How many versions have come since.
        self.versions = -1

    def look(self) -> bool:
        """Whether the snapshot is fresh now."""
        version = ask(self._directory, Wake(0), 5.0, int)
        self.versions += version != self._version
        self._version = version
        moments = ask_moments(self._directory, 5.0)
        return moments is not None and now() - moments.as_of <= InventorySettings().max_age_seconds


def _print_decisions(samples: list[Sample]) -> None:
    rows, trivial = [], dict[str, float]()
    for method, units in CALLS:
        p50, p99 = quantiles([sample.seconds for sample in samples if sample.call == (method, units)])
        base = trivial.setdefault(method, p50)
        row = {"method": method, "units": "\n".join(units), "p50": f"{p50:.2f}", "p99": f"{p99:.2f}"}
        row |= {"p50/trivial": f"{p50 / base:.2f}", "p99/trivial p50": f"{p99 / base:.1f}"}
        rows.append(row)
    print(records_table(rows))


if __name__ == "__main__":
    serve()
