"""What placement keys cost a decision in a cluster that never rests, and how that grows."""

from __future__ import annotations

import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
from msgspec.structs import replace

from ovirt_placement.inventory.protocol import Wake, ask
from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot
from ovirt_placement.store.keys import KeyStore
from ovirt_simulator.generate import Sizes, generate
from tests import builders
from tests.plugins.proxy_process import PLUGINS, proxy_url
from tests.plugins.published import Publisher
from tools.benchmarks.world import of_records

from .proxy import Client, post, quantiles

VMS_A_HOST = 20
FROZEN_KEYS = 8
#: Of this many names that customers use, each VM has some; and every host has these many of its own.
NAMES, NODE_NAMES = 40, 16
#: VMs that calls are about: each with keys of its own.
PLACED = [f"new{number}" for number in range(200)]
VERSIONS_PER_SECOND = 3
#: From one version to the next this many VMs migrate, and one starts again with other keys.
MIGRATIONS = 5
_SPECIAL = ("#RAM", "#CPU", "#LOAD")
WINDOW_SECONDS = 4.0
#: Enough that every worker has seen it.
WARM_UP_CALLS = 20
_TRIVIAL, _KEYS = "TrivialWeight", "PlacementKeyWeight"
_TRIVIAL_UNIT = f"""
class {_TRIVIAL}:
    def do_score(self, hosts, vm, args):
        return [(host, 0) for host in hosts]
"""


class Size(NamedTuple):
    hosts: int
    #: Of each VM that is placed.
    keys: int


FULL = Size(500, 16)
MORE_HOSTS = (Size(125, 16), Size(250, 16), FULL)
MORE_KEYS = (Size(500, 4), Size(500, 8), FULL, Size(500, 32))


class Measured(NamedTuple):
    size: Size
    #: Seconds of each call; the trivial unit's were made in turns with them.
    trivial: list[float]
    calls: list[float]
    #: Those that were the first on a new version, right after it was published.
    first: list[float]
    memory_mib: float


def main() -> None:
    measured = {size: _measure(size) for size in dict.fromkeys((*MORE_HOSTS, *MORE_KEYS))}
    print(
        f"score calls about {len(PLACED)} VMs in turn, every running VM with {FROZEN_KEYS} frozen keys; "
        f"{VERSIONS_PER_SECOND} versions a second; ms"
    )
    print(of_records([_row(measured[size]) for size in MORE_HOSTS]))
    _print_growth("hosts", [(size.hosts, quantiles(measured[size].calls)[0]) for size in MORE_HOSTS])
    print(of_records([_row(measured[size]) for size in MORE_KEYS]))
    _print_growth("keys", [(size.keys, quantiles(measured[size].calls)[0]) for size in MORE_KEYS])


def _row(found: Measured) -> dict[str, object]:
    (trivial, _), (p50, p99) = quantiles(found.trivial), quantiles(found.calls)
    first50, _ = quantiles(found.first)
    return {
        "hosts": found.size.hosts,
        "VMs": found.size.hosts * VMS_A_HOST,
        "keys": found.size.keys,
        "calls": len(found.calls),
        "trivial p50": f"{trivial:.2f}",
        "p50": f"{p50:.2f}",
        "p99": f"{p99:.2f}",
        "p50/trivial": f"{p50 / trivial:.2f}",
        "added": f"{p50 - trivial:.2f}",
        "first on a version, p50": f"{first50:.1f}",
        "longest": f"{max(found.first) * 1e3:.1f}",
        "largest worker, MiB": f"{found.memory_mib:.0f}",
    }


def _print_growth(what: str, points: Sequence[tuple[int, float]]) -> None:
    """Print the exponent that fits best, on a logarithmic scale: 1 is linear."""
    numbers, times = ([math.log(each) for each in column] for column in zip(*points, strict=True))
    slope, _ = statistics.linear_regression(numbers, times)
    print(f"p50 grows with {what} to the power of {slope:.2f}\n")


def _measure(size: Size) -> Measured:
    with tempfile.TemporaryDirectory() as name, _served(Path(name), size) as port:
        client, folder = Client(port), Path(name)
        requests = {unit: cycle([_request(size, unit, vm) for vm in PLACED]) for unit in (_TRIVIAL, _KEYS)}
        found = Measured(size, [], [], [], 0.0)
        until, version = time.monotonic() + WINDOW_SECONDS, ask(folder, Wake(0), 5.0, int)
        while time.monotonic() < until:
            found.trivial.append(client.call(next(requests[_TRIVIAL])))
            before, version = version, ask(folder, Wake(0), 5.0, int)
            seconds = client.call(next(requests[_KEYS]))
            found.calls.append(seconds)
            if version != before:
                found.first.append(seconds)
        client.close()
        return found._replace(memory_mib=_largest_worker())


def _largest_worker() -> float:
    """What the largest of the proxy's processes has resident."""
    processes = psutil.Process().children(recursive=True)
    return max(each.memory_info().rss for each in processes if each.ppid() != psutil.Process().pid) / 2**20


@contextmanager
def _served(folder: Path, size: Size) -> Iterator[int]:
    """Keep publishing a cluster of this size, and run a proxy with our units; gives its port."""
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "trivial.py").write_text(_TRIVIAL_UNIT)
    shutil.copy(PLUGINS / "placement_keys.py", plugins)
    KeyStore(f"sqlite:///{folder}/store.db", engine="default", patience_seconds=30).close()
    environment = {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(folder / "ovirt-placement.toml")}
    with _published(folder, size), proxy_url(environment, plugins) as url:
        with xmlrpc.client.ServerProxy(url) as proxy:
            for vm in PLACED[:WARM_UP_CALLS]:
                answer: Any = proxy.runCostFunctions([[_KEYS, 1]], hosts(size), vm, {})
                ranks = {rank for _, rank, _ in answer["result"] or ()}
                if answer["result_code"] != 0 or len(ranks) != size.hosts:
                    raise RuntimeError(f"no answer: {answer['plugin_errors']}")
        yield urlsplit(url).port or 0


@contextmanager
def _published(folder: Path, size: Size) -> Iterator[None]:
    command = [sys.executable, "-m", "tools.benchmarks.placement_keys", str(folder)]
    with subprocess.Popen(
        [*command, str(size.hosts), str(size.keys)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError("nothing was published")
            yield
        finally:
            process.terminate()


def hosts(size: Size) -> list[str]:
    return [host.id for host in _drawn(size).hosts]


@cache
def _drawn(size: Size) -> Snapshot:
    snapshot = generate(Sizes(hosts=size.hosts, vms=size.hosts * VMS_A_HOST, groups=0, down=0.0), seed=1)
    cluster = snapshot.clusters[0].id
    placed = (builders.vm(vm, cluster=cluster) for vm in PLACED)
    return replace(snapshot, vms=(*snapshot.vms, *placed))


def versions(size: Size) -> Iterator[Snapshot]:
    """Give the cluster with its keys, and what becomes of it."""
    drawn, dice = _drawn(size), random.Random(1)
    vms = {vm.id: vm for vm in drawn.vms}
    running = [vm.id for vm in drawn.vms if vm.host is not None]
    frozen = {vm: _frozen(vm, dice) for vm in running}
    node = (
        _key("node", host.id, "system", f"S{name}", dice)
        for host in drawn.hosts
        for name in range(NODE_NAMES)
    )
    keys = (*node, *(key for vm in PLACED for key in _wanted(vm, size.keys, dice)))
    while True:
        yield replace(drawn, vms=tuple(vms.values()), placement_keys=keys, frozen_keys=tuple(frozen.values()))
        *moved, started = dice.sample(running, MIGRATIONS + 1)
        for vm in moved:
            vms[vm] = replace(vms[vm], host=dice.choice(drawn.hosts).id)
        frozen[started] = _frozen(started, dice)


def _frozen(vm: str, dice: random.Random) -> FrozenKeys:
    names = dice.sample(range(NAMES), FROZEN_KEYS)
    return FrozenKeys(vm=vm, keys=tuple((f"C{name}", round(dice.random(), 1)) for name in names))


def _wanted(vm: str, count: int, dice: random.Random) -> Iterator[PlacementKey]:
    """Half of a VM's keys are the operator's, and of these a quarter special; half are the customer's."""
    half = count // 2
    special = min(half // 4, len(_SPECIAL))
    names = [f"S{name}" for name in dice.sample(range(NODE_NAMES), half - special)]
    customers = [f"C{name}" for name in dice.sample(range(NAMES), half)]
    for key_class, of_class in (("system", [*_SPECIAL[:special], *names]), ("customer", customers)):
        for name in of_class:
            yield replace(_key("server", vm, key_class, name, dice), weight=dice.choice((-20.0, 10.0, 33.3)))


def _key(level: str, resource: str, key_class: str, name: str, dice: random.Random) -> PlacementKey:
    return PlacementKey(
        level=level, resource=resource, key_class=key_class, name=name, value=round(dice.random(), 2)
    )


def publish(folder: Path, size: Size) -> None:
    """Publish for ever, as the inventory does."""
    publisher = Publisher(folder)
    for number, snapshot in enumerate(versions(size)):
        due = time.monotonic() + 1 / VERSIONS_PER_SECOND
        publisher.publish(snapshot)
        if number == 0:
            print("ready", flush=True)
        time.sleep(max(0.0, due - time.monotonic()))


def _request(size: Size, unit: str, vm: str) -> bytes:
    body = xmlrpc.client.dumps(([[unit, 1]], hosts(size), vm, {}), "runCostFunctions")
    return post(body.encode())


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Size(int(sys.argv[2]), int(sys.argv[3])))
