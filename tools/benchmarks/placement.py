"""Decisions on a large cluster that never rests, against the proxy's trivial unit; memory."""

from __future__ import annotations

import random
import statistics
import time
import xmlrpc.client
from itertools import chain, cycle
from typing import NamedTuple

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.protocol import Wake, ask, ask_moments
from ovirt_placement.inventory.publication import Moments, now
from ovirt_service.tables import table
from tools.benchmarks.world import INVENTORY_USER, WORKERS_USER, World, churning, of_records, running

from .proxy import Client, post, quantiles

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

#: Long enough for p99; one worker is killed in the middle of it.
WINDOW_SECONDS = 20.0
#: A decision every so often, as an engine makes them: a version of the inventory may come in between.
PACE_SECONDS = 0.05
QUIET_SECONDS = 5.0
#: About how many VMs each call is made, again and again.
VMS = 200


def main() -> None:
    with running(proxy=True) as world, churning(world.engine, world.state):
        _warm_up(world)
        _decisions("one after another", world, pause=0.0)
        _decisions(f"one every {PACE_SECONDS * 1e3:.0f} ms", world, pause=PACE_SECONDS)
        _memory(world)


def _request(world: World, call: Call, vm: str) -> bytes:
    method, units = call
    hosts = [host.id for host in world.snapshot.hosts]
    named = list(units) if method == "runFilters" else [[unit, 1] for unit in units]
    return post(xmlrpc.client.dumps((named, hosts, vm, {"HighUtilization": "80"}), method).encode())


def _warm_up(world: World) -> None:
    """Make each call once and look at its answer: what follows measures decisions and not failures."""
    hosts = [host.id for host in world.snapshot.hosts]
    vm = next(group.vms[0] for group in world.snapshot.affinity_groups if group.vms)
    with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{world.port}") as proxy:
        for method, units in CALLS:
            named = list(units) if method == "runFilters" else [[unit, 1] for unit in units]
            answer = getattr(proxy, method)(named, hosts, vm, {})
            if answer["result_code"] != 0:
                raise RuntimeError(f"{method} {units}: {answer['plugin_errors']}")


def _decisions(title: str, world: World, pause: float) -> None:
    """Make all calls in turns, about VMs with groups, while the engine is busy and one worker dies."""
    dice = random.Random(2)
    vms = dice.sample(list(chain.from_iterable(world.snapshot.group_vms.values())), VMS)
    requests = {call: [_request(world, call, vm) for vm in vms] for call in CALLS}
    quiet = _requests_made(world, QUIET_SECONDS)
    before, events, seen = world.requests(), world.last_event(), _Seen(world)
    samples: list[Sample] = []
    client = Client(world.port)
    began = time.monotonic()
    killed = False
    for turn in cycle(range(VMS)):
        passed = time.monotonic() - began
        if passed > WINDOW_SECONDS:
            break
        if not killed and passed > WINDOW_SECONDS / 2:
            dice.choice(world.workers()).kill()
            killed = True
        for call in CALLS:
            fresh = seen.look()
            samples.append(Sample(call, client.call(requests[call][turn]), fresh))
            time.sleep(pause)
    client.close()
    print(f"\ndecisions {title}, {VMS} VMs, {len(world.snapshot.hosts)} hosts, ms")
    _print_decisions(samples)
    decisions = [sample for sample in samples if not sample.trivial]
    after = world.requests()
    made = {user: after[user] - before[user] for user in (INVENTORY_USER, WORKERS_USER)}
    row = {
        "decisions": len(decisions),
        "p99, ms": f"{quantiles([sample.seconds for sample in decisions])[1]:.1f}",
        "of these on a fresh snapshot": f"{sum(sample.fresh for sample in decisions) / len(decisions):.0%}",
        "requests of workers for each": f"{made[WORKERS_USER] / len(decisions):.4f}",
        "of the inventory a second": f"{made[INVENTORY_USER] / passed:.1f}",
        "without decisions": f"{quiet:.1f}",
        "events a second": f"{(world.last_event() - events) / passed:.0f}",
        "versions a second": f"{seen.versions / passed:.1f}",
    }
    print(of_records([row]))


class Sample(NamedTuple):
    call: Call
    seconds: float
    #: Whether what was published was young enough for a decision when the call was made.
    fresh: bool

    @property
    def trivial(self) -> bool:
        return self.call[1][0].startswith("Trivial")


class _Seen:
    """What the inventory publishes, as a reader sees it."""

    def __init__(self, world: World) -> None:
        self._directory = world.config.inventory.directory
        self._version = 0
        #: How many versions have come since.
        self.versions = -1

    def look(self) -> bool:
        """Whether the snapshot is fresh now."""
        version = ask(self._directory, Wake(0), 5.0, int)
        self.versions += version != self._version
        self._version = version
        return (
            now() - Moments(*ask_moments(self._directory, 5.0)).as_of <= InventorySettings().max_age_seconds
        )


def _print_decisions(samples: list[Sample]) -> None:
    """Print a row for each call; what is fresh is compared with all of the trivial unit."""
    rows = []
    trivial: dict[str, float] = {}
    for method, units in CALLS:
        mine = [sample for sample in samples if sample.call == (method, units)]
        p50, p99 = quantiles([sample.seconds for sample in mine])
        fresh = [sample.seconds * 1e3 for sample in mine if sample.fresh]
        base = trivial.setdefault(method, p50)
        rows.append(
            {
                "method": method,
                "units": "\n".join(units),
                "calls": len(mine),
                "p50": f"{p50:.2f}",
                "p99": f"{p99:.2f}",
                "p50/trivial": f"{p50 / base:.2f}",
                "p99/trivial p50": f"{p99 / base:.1f}",
                "fresh p50": f"{statistics.median(fresh):.2f}" if fresh else "-",
                "fresh p50/trivial": f"{statistics.median(fresh) / base:.2f}" if fresh else "-",
            }
        )
    print(of_records(rows))


def _requests_made(world: World, seconds: float) -> float:
    """Give the inventory's requests each second while nobody asks for decisions."""
    before = world.requests()[INVENTORY_USER]
    time.sleep(seconds)
    return (world.requests()[INVENTORY_USER] - before) / seconds


def _memory(world: World) -> None:
    workers = world.workers()
    unique = [worker.memory_full_info().uss / 2**20 for worker in workers]
    resident = [worker.memory_info().rss / 2**20 for worker in workers]
    inventory = world.process("inventory run")
    print("\nmemory, MiB")
    row = [
        len(workers),
        f"{max(unique):.0f}",
        f"{max(resident):.0f}",
        f"{inventory.memory_info().rss / 2**20:.0f}",
    ]
    headers = ["workers", "of its own, the largest", "resident, the largest", "the inventory"]
    print(table([row], headers))
