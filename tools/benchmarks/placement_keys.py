"""What placement keys cost a decision, and how that grows with hosts and keys."""

from __future__ import annotations

import math
import os
import random
import shutil
import statistics
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot
from ovirt_placement.store.keys import KeyStore
from ovirt_simulator.generate import Sizes, generate
from tests import builders
from tests.plugins.proxy_process import PLUGINS, proxy_url
from tests.plugins.published import Publisher
from tools.stage import TRIVIAL, of_records, quantiles

from .proxy import Client, asked

VMS_A_HOST, FROZEN_KEYS = 20, 8
#: Of this many names that customers use, each VM has some; and every host has these many of its own.
NAMES, NODE_NAMES = 40, 16
#: VMs that calls are about: each with keys of its own.
PLACED = [f"new{number}" for number in range(200)]
_SPECIAL = ("#RAM", "#CPU", "#LOAD")
WINDOW_SECONDS = 4.0
#: Enough that every worker has seen it.
WARM_UP_CALLS = 20
_TRIVIAL, _KEYS = "TrivialWeight", "PlacementKeyWeight"


class Size(NamedTuple):
    hosts: int
    #: Of each VM that is placed.
    keys: int


FULL = Size(500, 16)
MORE_HOSTS = (Size(125, 16), Size(250, 16), FULL)
MORE_KEYS = (Size(500, 4), Size(500, 8), FULL, Size(500, 32))


def main() -> None:
    times = {size: _measure(size) for size in dict.fromkeys((*MORE_HOSTS, *MORE_KEYS))}
    print(f"score calls about {len(PLACED)} VMs in turn, {FROZEN_KEYS} frozen keys on every running VM; ms")
    for what, sizes in (("hosts", MORE_HOSTS), ("keys", MORE_KEYS)):
        print(of_records([{"hosts": size.hosts, "keys": size.keys, **_row(*times[size])} for size in sizes]))
        points = [(getattr(size, what), quantiles(times[size][1])[0]) for size in sizes]
        print(f"p50 grows with {what} to the power of {_exponent(points):.2f}\n")


def _row(trivial: list[float], keyed: list[float]) -> dict[str, object]:
    (base, _), (p50, p99) = quantiles(trivial), quantiles(keyed)
    shown = {"trivial p50": base, "p50": p50, "p99": p99, "p50/trivial": p50 / base, "added": p50 - base}
    return {"calls": len(keyed), **{name: f"{each:.2f}" for name, each in shown.items()}}


def _exponent(points: Sequence[tuple[int, float]]) -> float:
    """The exponent that fits best, on a logarithmic scale: 1 is linear."""
    numbers, times = ([math.log(each) for each in column] for column in zip(*points, strict=True))
    return statistics.linear_regression(numbers, times).slope


def _measure(size: Size) -> tuple[list[float], list[float]]:
    """Seconds of each call of the trivial unit and of ours, made in turns."""
    times: dict[str, list[float]] = {_TRIVIAL: [], _KEYS: []}
    with tempfile.TemporaryDirectory() as name, _served(Path(name), size) as (port, hosts):
        client = Client(port)
        requests = {
            unit: cycle([asked("runCostFunctions", (unit,), hosts, vm) for vm in PLACED]) for unit in times
        }
        until = time.monotonic() + WINDOW_SECONDS
        while time.monotonic() < until:
            for unit, its in times.items():
                its.append(client.call(next(requests[unit])))
        client.close()
    return times[_TRIVIAL], times[_KEYS]


@contextmanager
def _served(folder: Path, size: Size) -> Iterator[tuple[int, list[str]]]:
    """Publish a cluster of this size, and run a proxy with our units; gives its port, and the hosts."""
    plugins, snapshot = folder / "plugins", _drawn(size)
    hosts = [host.id for host in snapshot.hosts]
    plugins.mkdir()
    (plugins / "trivial.py").write_text(TRIVIAL)
    shutil.copy(PLUGINS / "placement_keys.py", plugins)
    KeyStore(f"sqlite:///{folder}/store.db", engine="default", patience_seconds=30).close()
    Publisher(folder).publish(snapshot)
    environment = {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(folder / "ovirt-placement.toml")}
    with proxy_url(environment, plugins) as url:
        with xmlrpc.client.ServerProxy(url) as proxy:
            for vm in PLACED[:WARM_UP_CALLS]:
                answer: Any = proxy.runCostFunctions([[_KEYS, 1]], hosts, vm, {})
                ranks = {rank for _, rank, _ in answer["result"] or ()}
                if answer["result_code"] != 0 or len(ranks) != size.hosts:
                    raise RuntimeError(f"no answer: {answer['plugin_errors']}")
        yield urlsplit(url).port or 0, hosts


def _drawn(size: Size) -> Snapshot:
    """A cluster with keys."""
    drawn = generate(Sizes(hosts=size.hosts, vms=size.hosts * VMS_A_HOST, groups=0, down=0.0), seed=1)
    cluster, dice = drawn.clusters[0].id, random.Random(1)
    frozen = tuple(_frozen(vm.id, dice) for vm in drawn.vms if vm.host is not None)
    node = (
        _key("node", host.id, "system", f"S{name}", dice)
        for host in drawn.hosts
        for name in range(NODE_NAMES)
    )
    keys = (*node, *(key for vm in PLACED for key in _wanted(vm, size.keys, dice)))
    placed = (builders.vm(vm, cluster=cluster) for vm in PLACED)
    return replace(drawn, vms=(*drawn.vms, *placed), placement_keys=keys, frozen_keys=frozen)


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
