"""Killed at any point and started again, the enforcer repairs the same, and keeps the same of VMs, once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import ovirtsdk4
import pytest

from ovirt_placement.model import Snapshot, StickyCopy
from ovirt_placement.store.enforcer.intents import Cause, Store
from ovirt_placement.store.keys import KeyStore, Run
from tests.builders import TOGETHER, group, host, snapshot, vm
from tests.configuration import PASSWORD, write_configuration
from tests.enforcer.actions.bench import STATE as ONE_REPAIR
from tests.enforcer.launching import ANY, At, EnforcerProcess, simulator
from tests.enforcer.leaders.test_leaders import HOLDS, migrations_of
from tests.enforcer.watchers.keeper_bench import KEYS
from tests.placement.databases import database
from tests.proxy.running import eventually
from tests.stored import put_keys

EAGER = """\
[enforcer]
mode = "enforce"
interval_seconds = 0.2
poll_seconds = 0.03
settle_seconds = 0.2
cooldown_seconds = 0.2
events_seconds = 3600
lease_seconds = 0.6
strategy = "greedy"
"""


def is_well(said: list[str]) -> bool:
    """Whether all rules are satisfied, and each part works again that a lease had ended for meanwhile.

    A busy machine does not always renew so short a lease in time.
    """
    failing = set()
    for line in said:
        level, _, text = line.strip().partition(" ")
        if level == "WARNING" and text.endswith("another may lead now"):
            failing.add(text.partition(":")[0])
        elif text.endswith(": works again"):
            failing.discard(text.partition(":")[0])
    return any(HOLDS in line for line in said) and not failing


class World:
    """A simulated engine, and the enforcer processes that come and go."""

    def __init__(self, folder: Path, api: str) -> None:
        self.folder = folder
        self.api = api
        self.store_url = f"sqlite:///{folder}/store.db"
        self.configuration = write_configuration(folder, api, more=EAGER)
        #: The points that the last enforcer has passed.
        self.points: list[str] = []
        self._names = count()

    def enforce(self, fatal: int = 0) -> str:
        """Run an enforcer until it is killed at the fatal point, or all rules are satisfied; its output."""
        at = At(ANY, fatal, signal.SIGKILL, loop=True)
        name = f"enforcer{next(self._names)}"
        with EnforcerProcess(self.folder, name, self.configuration, at) as enforcer:
            eventually(lambda: enforcer.killed if fatal else is_well(enforcer.said.splitlines()))
            if not fatal:
                enforcer.end()
            self.points = enforcer.passed
            return enforcer.said

    def migrations(self) -> list[str]:
        """What the engine's events say of migrations that began and ended."""
        return [f"{event.code} {event.vm.name}" for event in migrations_of(self.api)]

    def remembered(self) -> list[str]:
        """What the store knows of migrations that the engine was asked for."""
        store = Store(self.store_url, engine="default")
        assert not store.open_intents()
        history = store.history(within_seconds=600)
        found = [one for one in history if one.cause not in (Cause.NEVER_ASKED, Cause.NO_TRACE)]
        store.close()
        runs = sorted(f"{vm} ran before" for vm in self.written())
        return runs + sorted(f"{intent.vm} to {intent.target}: {intent.state}" for intent in found)

    def records(self) -> dict[str, Any]:
        """What the keeper remembers."""
        store = KeyStore(self.store_url, engine="default")
        records = store.records()
        store.close()
        with database(self.store_url) as connection:
            missing = connection.exec_driver_sql("SELECT vm FROM missing_vms").scalars().all()
        return {
            "frozen": {record.vm: record.keys for record in records.frozen_keys},
            "copies": {(copy.vm, copy.value) for copy in records.sticky_copies},
            "missing": set(missing),
        }

    def written(self) -> dict[str, float]:
        """When the frozen set of each VM was written."""
        with database(self.store_url) as connection:
            found = connection.exec_driver_sql("SELECT vm, recorded FROM frozen_keys").all()
        return dict(found)

    def placement(self) -> dict[str, str]:
        with ovirtsdk4.Connection(self.api, "admin@internal", PASSWORD) as connection:
            vms = connection.system_service().vms_service().list()
        return {vm.name: f"{vm.status.value} {vm.host.id}" for vm in vms}


@contextmanager
def world(folder: Path, state: Snapshot) -> Iterator[World]:
    with simulator(folder, state) as api:
        yield World(folder, api)


class Extent(NamedTuple):
    """Which points are tried: of some kind, and of these each `parts`-th, from this part on."""

    kind: str
    part: int = 0
    parts: int = 1

    def __str__(self) -> str:
        return f"{self.kind} {self.part}"


#: The two around the first thing that is done; all those after which something stays outside (two halves);
#: a sixth of those amid a transaction, which must be undone. Any other leaves the world as one of these does.
EXTENTS = [
    Extent("decisive"),
    *(
        pytest.param(extent, marks=pytest.mark.nightly)
        for extent in (Extent("lasting", 0, 2), Extent("lasting", 1, 2), Extent("unfinished", 0, 6))
    ),
]
_LASTING = ("after commit", "after POST")
_UNFINISHED = ("after INSERT", "after UPDATE", "after DELETE", "after CREATE")

#: Two that stand together and must go elsewhere: one by one the engine would refuse them.
CLOSURE = snapshot(
    host("h1"),
    host("h2"),
    vm("a", "h1"),
    vm("b", "h1"),
    group("pair", TOGETHER, "a b", hosts_rule=TOGETHER, hosts="h2"),
)
#: Two migrations that run at the same time.
TWO_REPAIRS = snapshot(
    *(host(f"h{number}") for number in range(1, 5)),
    vm("a", "h1"),
    vm("b", "h2", migratable=False),
    vm("c", "h3"),
    vm("d", "h4", migratable=False),
    group("pair", TOGETHER, "a b"),
    group("other", TOGETHER, "c d"),
)

#: What the keeper has to do: two VMs that run without a record, one whose run is over, one that is gone.
RUNS = snapshot(
    host("h1"),
    host("h2"),
    vm("a", "h1", custom_properties={"placement_keys": "Repel1:1:-100"}),
    vm("b", "h2"),
    vm("over"),
)
KEPT = {
    "frozen": {"a": (("Repel1", 1.0),), "b": (), "gone": (("Old", 1.0),)},
    "copies": {("a", 1.0), ("b", 2.0), ("over", 1.0), ("gone", 1.0)},
    "missing": {"gone"},
}


def moments(points: list[str], first: int, last: int, extent: Extent) -> list[int]:
    """The numbers of the points of this extent, from the first to the last."""
    wanted = _UNFINISHED if extent.kind == "unfinished" else _LASTING
    found = [number for number in range(first, last + 1) if points[number - 1].startswith(wanted)]
    return found[:2] if extent.kind == "decisive" else found[extent.part :: extent.parts]


def remember_earlier_runs(world: World) -> None:
    """Make a store with islands of storage, and with runs that have ended unobserved."""
    store = KeyStore(world.store_url, engine="default")
    put_keys(store, KEYS[:2])
    ended = ("over", "gone")
    store.begin_runs([Run(one, 1.0, (("Old", 1.0),), (StickyCopy(one, "SAN", 1.0, 60.0),)) for one in ended])
    store.close()


@pytest.mark.system
@pytest.mark.parametrize("extent", EXTENTS, ids=str)
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(ONE_REPAIR, id="one migration", marks=pytest.mark.nightly),
        pytest.param(TWO_REPAIRS, id="two at once"),
        pytest.param(CLOSURE, id="a closure"),
    ],
)
def test_killed_at_any_point_the_cluster_ends_the_same(
    state: Snapshot, extent: Extent, tmp_path: Path
) -> None:
    with world(tmp_path / "undisturbed", state) as undisturbed:
        undisturbed.enforce()
        points = undisturbed.points
        expected = (undisturbed.placement(), sorted(undisturbed.migrations()), undisturbed.remembered())
    asked = next(number for number, point in enumerate(points) if "/migrate" in point)

    # What happens before the first intent and after the last is the same for any repair.
    first, last = 1, len(points)
    if state is not ONE_REPAIR:
        first = 1 + max(number for number in range(asked) if points[number].startswith("before INSERT"))
        last = 3 + max(number for number, point in enumerate(points) if point == "after commit")
    for fatal in moments(points, first, last, extent):
        with world(tmp_path / str(fatal), state) as disturbed:
            before = disturbed.enforce(fatal)
            point = f"killed {disturbed.points[-1]}, point {fatal}"
            after = disturbed.enforce()
            ended = (disturbed.placement(), sorted(disturbed.migrations()), disturbed.remembered())
            assert ended == expected, f"{point}\n{before}\n{after}"


@pytest.mark.system
@pytest.mark.parametrize("extent", EXTENTS, ids=str)
def test_killed_at_any_point_the_keeper_remembers_the_same_once(extent: Extent, tmp_path: Path) -> None:
    with world(tmp_path / "undisturbed", RUNS) as undisturbed:
        remember_earlier_runs(undisturbed)
        undisturbed.enforce()
        points = undisturbed.points
        expected = undisturbed.records()
    assert expected == KEPT

    commits = [number for number, point in enumerate(points, 1) if point == "after commit"]
    # At the least: the end of a run, the beginning of others, a VM that is missing.
    assert len(commits) >= 3
    first = next(at for at, point in enumerate(points, 1) if point.startswith("before INSERT"))
    for fatal in moments(points, first, commits[-1], extent):
        with world(tmp_path / str(fatal), RUNS) as disturbed:
            remember_earlier_runs(disturbed)
            before = disturbed.enforce(fatal)
            written = disturbed.written()
            point = f"killed {disturbed.points[-1]}, point {fatal}"
            after = disturbed.enforce()
            assert disturbed.records() == expected, f"{point}\n{before}\n{after}"
            kept = {vm: at for vm, at in disturbed.written().items() if vm in written}
            assert kept == {vm: at for vm, at in written.items() if vm in kept}, point
