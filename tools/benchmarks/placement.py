"""Decisions on a large cluster that never rests, against the proxy's trivial unit.

What workers hold, and what it costs that they are killed, the soak shows (`tools.soak`).
"""

from __future__ import annotations

import random
import time
import xmlrpc.client
from itertools import chain, cycle
from typing import NamedTuple

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.protocol import Wake, ask, ask_moments
from ovirt_placement.inventory.publication import Moments, now
from tools.stage import INVENTORY_USER, WORKERS_USER, Stage, of_records, quantiles, running

from .proxy import Client, asked

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

    @property
    def trivial(self) -> bool:
        return self.call[1][0].startswith("Trivial")


def main() -> None:
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
    decisions = [sample for sample in samples if not sample.trivial]
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
    print(of_records([row]))


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
        as_of = Moments(*ask_moments(self._directory, 5.0)).as_of
        return now() - as_of <= InventorySettings().max_age_seconds


def _print_decisions(samples: list[Sample]) -> None:
    rows, trivial = [], dict[str, float]()
    for method, units in CALLS:
        p50, p99 = quantiles([sample.seconds for sample in samples if sample.call == (method, units)])
        base = trivial.setdefault(method, p50)
        row = {"method": method, "units": "\n".join(units), "p50": f"{p50:.2f}", "p99": f"{p99:.2f}"}
        row |= {"p50/trivial": f"{p50 / base:.2f}", "p99/trivial p50": f"{p99 / base:.1f}"}
        rows.append(row)
    print(of_records(rows))
