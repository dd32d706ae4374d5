"""What placement keys cost a decision, against the proxy's trivial unit, and how that grows."""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tabulate import tabulate

from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.store_keys import KeyStore, Run
from tests import builders
from tests.plugins.proxy_process import PLUGINS, proxy_url
from tests.plugins.published import Publisher

from .proxy import Client, post, quantiles

VMS_A_HOST = 20
FROZEN_KEYS = 8
#: Of so many names that customers use, each VM has some; with few, all hosts have all of them.
NAMES = 40
CALLS = 150
#: Enough that every worker has seen it.
WARM_UP_CALLS = 20
NEW_SNAPSHOTS = 5
_TRIVIAL = """
class TrivialWeight:
    def do_score(self, hosts, vm, args):
        return [(host, 0) for host in hosts]
"""


class Size(NamedTuple):
    hosts: int
    #: Of the VM that is placed; half are the operator's.
    keys: int


FULL = Size(500, 16)
SIZES = (FULL, Size(250, 16), Size(125, 16), Size(500, 8), Size(500, 4))


def main() -> None:
    rows = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name, _served(Path(name), size) as (publisher, port):
            client = Client(port)
            times: dict[str, list[float]] = {"TrivialWeight": [], "PlacementKeyWeight": []}
            requests = {unit: _request(size, unit) for unit in times}
            for _ in range(CALLS):
                for unit, found in times.items():
                    found.append(client.call(requests[unit]))
            new = []
            for _ in range(NEW_SNAPSHOTS):
                publisher.publish(_snapshot(size))
                new.append(client.call(requests["PlacementKeyWeight"]) * 1e3)
            client.close()
        (trivial, _), (p50, p99) = (quantiles(found) for found in times.values())
        row = (size.hosts, size.hosts * VMS_A_HOST, size.keys, trivial, p50, p99, p50 / trivial)
        rows.append((*row, statistics.median(new)))
    headers = ["hosts", "VMs", "keys", "trivial p50", "p50", "p99", "p50/trivial", "on a new snapshot"]
    print(f"score calls, each running VM with {FROZEN_KEYS} frozen keys, ms")
    print(tabulate(rows, headers, floatfmt=".2f"))


@contextmanager
def _served(folder: Path, size: Size) -> Iterator[tuple[Publisher, int]]:
    """Publish a cluster of this size, with its keys in a store, and run a proxy with our units."""
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "trivial.py").write_text(_TRIVIAL)
    shutil.copy(PLUGINS / "placement_keys.py", plugins)
    publisher = Publisher(folder)
    publisher.publish(_snapshot(size))
    store = KeyStore(f"sqlite:///{folder}/store.db", patience_seconds=30)
    store.change(_keys(size), set_by="ann")
    store.begin_runs(_runs(size))
    store.close()
    with proxy_url(publisher.environment, plugins) as url:
        with xmlrpc.client.ServerProxy(url) as proxy:
            for _ in range(WARM_UP_CALLS):
                answer: Any = proxy.runCostFunctions([["PlacementKeyWeight", 1]], _hosts(size), "new", {})
                if answer["result_code"] != 0 or len(answer["result"]) != size.hosts:
                    raise RuntimeError(f"no answer: {answer['plugin_errors']}")
        yield publisher, urlsplit(url).port or 0


def _hosts(size: Size) -> list[str]:
    return [f"00000000-0000-0000-0000-{number:012}" for number in range(size.hosts)]


def _snapshot(size: Size) -> Snapshot:
    hosts = _hosts(size)
    large = {"memory_mb": 2**20, "free_mb": 2**19}
    vms = [builders.vm(f"v{number}", hosts[number % size.hosts]) for number in range(size.hosts * VMS_A_HOST)]
    return builders.snapshot(*(builders.host(host, **large) for host in hosts), *vms, builders.vm("new"))


def _keys(size: Size) -> list[PlacementKey]:
    """Half of the keys are the operator's, with a value on every host; half are the customer's."""
    dice = random.Random(1)
    half = size.keys // 2
    own = [
        PlacementKey(
            level="node", resource=host, key_class="system", name=f"S{at}", value=round(dice.random(), 2)
        )
        for host in _hosts(size)
        for at in range(half)
    ]
    wanted = [
        PlacementKey(
            level="server",
            resource="new",
            key_class=kind,
            name=f"{kind[0].upper()}{at}",
            value=0.5,
            weight=20,
        )
        for kind in ("system", "customer")
        for at in range(half)
    ]
    return own + wanted


def _runs(size: Size) -> list[Run]:
    dice = random.Random(2)
    return [
        Run(
            f"v{number}",
            None,
            tuple(
                (f"C{at}", round(dice.random(), 1)) for at in sorted(dice.sample(range(NAMES), FROZEN_KEYS))
            ),
        )
        for number in range(size.hosts * VMS_A_HOST)
    ]


def _request(size: Size, unit: str) -> bytes:
    body = xmlrpc.client.dumps(([[unit, 1]], _hosts(size), "new", {}), "runCostFunctions")
    return post(body.encode())
