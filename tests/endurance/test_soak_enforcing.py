"""The enforcer migrates hundreds of times, since rules settle and break again; nothing is left behind."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psutil
import pytest

from ovirt_enforcer.service.daemon import Daemon
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_simulator.http.control import Disturbance
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.actions import bench as benches
from tests.enforcer.actions.bench import Bench, Settings

PAIRS = 8
#: What keeps VMs still for a while is not what this is about.
SETTINGS: Settings = {
    "mode": "enforce",
    "cooldown_seconds": 0.001,
    "cooldown_after_success_seconds": 0.0,
    "circle_seconds": 0.001,
    "vm_migrations_per_hour": 100_000,
    "cluster_migrations_per_hour": 100_000,
}
#: What befalls the engine now and then, on top of rules that break.
TROUBLES = (
    {"method": "POST", "path": "/migrate", "drop": "answer"},
    {"method": "POST", "path": "/migrate", "drop": "request"},
    {"method": "POST", "path": "/migrate", "status": 500},
    {"method": "GET", "path": "/vms/", "drop": "answer"},
    {"method": "GET", "path": "/vms", "status": 503},
    {"method": "GET", "path": "/events", "drop": "request"},
)
#: Connections that curl keeps for a while, each with both of its ends: some come and go.
SPARE = 40
#: Simulated seconds within which works again, whatever happened; unanswered requests come again late.
LONGEST = 4 * 3600.0


def pairs() -> Snapshot:
    numbers = range(PAIRS)
    return snapshot(
        *(host(f"h{at}") for at in range(4)),
        *(vm(f"v{at}", f"h{at % 4}") for at in range(2 * PAIRS)),
        *(group(f"pair{at}", APART, f"v{2 * at} v{2 * at + 1}") for at in numbers),
    )


def happen(bench: Bench, random: Random) -> None:
    """Some pairs are wanted the other way round, and perhaps the engine has troubles."""
    stands = {one.id: one.vms_rule for one in bench.engine.snapshot().affinity_groups}
    for name in random.sample(sorted(stands), random.randint(1, 4)):
        rule = APART if stands[name] == TOGETHER else TOGETHER
        bench.engine.affinity_groups.edit(name, vms_rule=rule)
    if random.random() < 0.3:
        bench.server.disturbances.add(Disturbance(**random.choice(TROUBLES)))  # type: ignore[arg-type]


def settle(bench: Bench, daemon: Daemon) -> None:
    until = bench.now + LONGEST
    while bench.store.open_intents() or find_violations(bench.engine.snapshot(), CLUSTER):
        bench.run(daemon, bench.now + 30.0)
        assert bench.now < until, [str(one) for one in find_violations(bench.engine.snapshot(), CLUSTER)]
    bench.server.disturbances.clear()


def size() -> dict[str, int]:
    return {"files": psutil.Process().num_fds(), "threads": threading.active_count()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path, pairs(), SETTINGS) as made:
        yield made


_MIGRATIONS = 300


@pytest.mark.nightly
def test_hundreds_of_migrations_leave_nothing_behind(bench: Bench) -> None:
    random = Random(_MIGRATIONS)
    with bench.enforcing() as daemon:
        for _ in range(10):  # connections and threads that stay are made
            happen(bench, random)
            settle(bench, daemon)
        before = size()
        while len(bench.begun()) < _MIGRATIONS:
            happen(bench, random)
            settle(bench, daemon)
        after = size()
    ends = Counter(intent.state for intent in bench.intents())
    assert ends[IntentState.DONE] == len(bench.begun())
    for intent in bench.intents():
        if intent.state is not IntentState.DONE:
            assert intent.cause is not None, intent
    for kind, count in after.items():
        assert count <= before[kind] + SPARE, (kind, before, after)
