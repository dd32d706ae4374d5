"""Random clusters in trouble: satisfied rules stay so, others are repaired; what must not be is recorded."""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.http.server import serve
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.enforcer.safety.oracles import Begun, faults_of, fewest_violated, passed, settled, violated
from tests.enforcer.safety.recorder import Recorder
from tests.enforcer.safety.world import Case, drawn, of_cluster, play
from tests.examples import seeds
from tests.placement.planning.ordered import MOVES, repair
from tests.scenarios.stage import START, configured, daemon_of, simulated_time

#: Clusters that one engine has, and in the quick suite.
_AT_ONCE, _FEW = 20, 5


def judged(cases: Sequence[Case], folder: Path, seed: int) -> list[str]:
    """All that went wrong while these cases were played, and what could be repaired still."""
    world = play(cases, folder, seed)
    end = world.engine.snapshot()
    faults = list(world.recorder.faults)
    for case in cases:
        left = of_cluster(end, case)
        count = violated(left)
        least = fewest_violated(left) if count else 0
        if count > least:
            faults.append(f"{case.cluster} ends with {count} hard rules violated, where {least} must stay")
        moving = [vm.id for vm in left.vms if vm.status == "migrating"]
        if moving:
            faults.append(f"{case.cluster} ends with {', '.join(moving)} on the way")
    return faults


@pytest.mark.system
def test_nothing_that_held_is_violated_and_the_end_is_repaired_or_cannot_be(tmp_path: Path) -> None:
    assert judged([drawn(number) for number in range(_FEW)], tmp_path, 0) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", seeds(4))
def test_the_same_for_many_clusters(seed: int, tmp_path: Path) -> None:
    cases = [drawn(number) for number in range(seed * _AT_ONCE, (seed + 1) * _AT_ONCE)]
    assert judged(cases, tmp_path, seed) == []


@pytest.mark.nightly
def test_the_same_for_larger_clusters(tmp_path: Path) -> None:
    assert judged([drawn(10_000 + number, vms=7) for number in range(25)], tmp_path, 10_000) == []


SETTINGS = EnforcerSettings(
    interval_seconds=700.0, cluster_migrations_per_cycle=1, cluster_migrations_per_hour=2
)


def begun(vm: str, at: float) -> Begun:
    return Begun(vm=vm, source="h1", target="h2", request=vm, at=at, tick=0, reading=0)


@pytest.mark.parametrize(("now", "faults"), [(723.0, 1), (723.9, 1), (723.9999963, 0), (724.0, 0)], ids=str)
def test_a_cycle_is_over_when_the_clock_of_the_store_says_so(now: float, faults: int) -> None:
    assert len(passed(SETTINGS, {}, [begun("a", 24.0)], [begun("b", now)], now)) == faults


#: What counts here is what hosts can do: two migrations at once.
_WIDE = {
    "mode": "enforce",
    "host_migrations_in": 2,
    "host_migrations_out": 2,
    "cluster_migrations_at_once": 1000,
    "migrations_at_once": 1000,
    "cluster_migrations_per_cycle": 1000,
    "cluster_migrations_per_hour": 1000,
    "poll_seconds": 2.0,
}
_MOST_SECONDS = 6000.0


def carried_out(state: Snapshot, folder: Path) -> Recorder:
    """Let the daemon repair a cluster until nothing is under way or due for a while."""
    engine = Engine.from_snapshot(
        state, clock=START, settings=replace(PROMPT, migration_mib_per_second=128.0)
    )
    recorder = Recorder(engine, msgspec.convert(_WIDE, EnforcerSettings))
    now = 0.0

    def read() -> Snapshot:
        """What the engine knows, without the time that a real reading of all this takes."""
        known = engine.snapshot()
        return replace(known, vms=tuple(replace(vm, migrating_to=None) for vm in known.vms))

    with closing(serve(engine)) as server:
        config = configured(folder, server.api_url, _WIDE)
        with (
            EngineConnection(config.engine) as connection,
            simulated_time(lambda: now),
            daemon_of(config, connection, lambda: now, read) as daemon,
        ):
            while now < _MOST_SECONDS:
                pause = max(0.1, daemon.cycle())
                if pause > 5.0 and not recorder.under_way and now > 0.0:
                    break
                engine.advance(pause)
                now += pause
    return recorder


@pytest.mark.nightly
def test_a_repair_of_238_migrations_takes_little_longer_than_its_busiest_host(tmp_path: Path) -> None:
    state, _ = repair(1, hosts=260, vms=600)
    hosts = (replace(one, memory_mb=2 * one.free_mb or one.memory_mb) for one in state.hosts)
    recorder = carried_out(replace(state, hosts=tuple(hosts)), tmp_path)
    ours = recorder.ours
    seconds = defaultdict[tuple[str, str], float](float)
    for one in ours:
        for end in (("out", one.source), ("in", one.target)):
            seconds[end] += one.ended - one.at
    least, last = max(seconds.values()) / 2, max(one.ended for one in ours)
    print(f"\n{len(ours)} migrations in {last:.0f} s; the busiest host needs {least:.0f} s, two at once")
    print(f"one after another: {sum(seconds.values()) / 2:.0f} s")
    assert recorder.faults == []
    assert all(one.arrived for one in ours)
    assert len(ours) == MOVES
    assert last <= 1.3 * least


#: One migration repairs it: of a1, to h2.
STATE = snapshot(
    *(host(f"h{number}") for number in (1, 2, 3)),
    vm("a1", "h1"),
    vm("a2", "h2", migratable=False),
    vm("b1", "h1"),
    vm("b2", "h3"),
    group("a", TOGETHER, "a1 a2"),
    group("b", APART, "b1 b2"),
)


class Scene:
    """An engine, and the migrations with our correlation ids."""

    def __init__(self) -> None:
        self.engine = Engine.from_snapshot(STATE, clock=START, settings=PROMPT)
        self.recorder = Recorder(self.engine, EnforcerSettings(), {"a2"})

    def migrate(self, vm_id: str, host_id: str) -> None:
        self.engine.vms.migrate(vm_id, host_id=host_id, caller=Caller(user="me", correlation_id="request"))

    @property
    def faults(self) -> list[str]:
        """Without the time."""
        return [fault.partition(": ")[2] for fault in self.recorder.faults]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_repair_is_no_fault(scene: Scene) -> None:
    assert not scene.recorder.repaired
    scene.migrate("a1", "h2")
    assert not scene.recorder.repaired
    scene.engine.advance(60)
    assert scene.recorder.repaired
    assert scene.faults == []
    assert [(one.vm, one.target, one.arrived) for one in scene.recorder.ours] == [("a1", "h2", True)]


@pytest.mark.parametrize(
    ("requests", "fault"),
    [
        (["a1 h2", "a1 h3"], "asked to move a1, which is on its way to h2"),
        (["b1 h3"], "b1 is asked to go to h3, and refused"),
        (["b2 h2"], "b2 goes to h2: 1 migrations were left to do, and 1 are then"),
    ],
    ids=["twice", "violates a rule", "repairs nothing"],
)
def test_a_request_that_must_not_be(scene: Scene, requests: list[str], fault: str) -> None:
    for request in requests:
        with suppress(Rejected):
            scene.migrate(*request.split())
    assert scene.faults == [fault]


def test_a_rule_that_held_and_is_violated(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own filters, which would refuse it, are taken away."""
    monkeypatch.setattr(scene.engine.vms._migrations, "_validated", scene.engine.vms._migrations._request)
    monkeypatch.setattr(scene.engine.vms._migrations.scheduler, "schedule", lambda _, begin: begin("h3"))
    scene.migrate("b1", "h3")
    scene.engine.advance(60)
    begins, needless, arrives = scene.faults
    assert begins == "b1 begins to move to h3, which violates b1, b2 apart"
    assert needless == "b1 goes to h3: 1 migrations were left to do, and 2 are then"
    assert arrives == "b1 has arrived on h3, which violates b1, b2 apart"


@pytest.mark.parametrize(
    ("state", "arrived", "complaint"),
    [
        ("done", True, None),
        ("failed", True, "no record says done"),
        ("accepted", True, "open at the end"),
        (None, True, "no record"),
        ("done", None, "recorded, and never was"),
    ],
)
def test_a_record_that_is_missing_or_open_or_wrong(
    tmp_path: Path, state: str | None, arrived: bool | None, complaint: str | None
) -> None:
    store = tmp_path / "store.db"
    begun = Begun("a1", "h1", "h2", "request", at=0.0, tick=0, reading=0, arrived=arrived)
    with closing(sqlite3.connect(store)) as file:
        file.execute("CREATE TABLE intents (vm, target, correlation_id, state, error)")
        if state is not None:
            file.execute("INSERT INTO intents VALUES ('a1', 'h2', 'request', ?, NULL)", [state])
        file.commit()
    found = list(faults_of(store, [] if arrived is None else [begun]))
    assert (not found) if complaint is None else found[0].startswith(complaint)
    assert settled(store) == (state != "accepted")
