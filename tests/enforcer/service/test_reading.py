"""What calls for a look at a cluster, how soon, and what is read then."""

import time
from collections.abc import Iterator
from contextlib import nullcontext
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_enforcer.service.daemon import Pace
from ovirt_enforcer.service.process import Changed, Changes, StateReading
from ovirt_enforcer.service.reading import changed, reported
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.inventory.client import DEFAULT_DEADLINE_SECONDS
from ovirt_placement.model import AffinityRule, Snapshot
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.builders import engine_event as event
from tests.clock import Clock
from tests.configuration import write_configuration
from tests.enforcer.actions.bench import bench
from tests.enforcer.service.test_process import running
from tests.placement.inventory.running import running as inventory_running
from tests.proxy.running import eventually
from tests.scenarios.stage import START, configured

STATE = snapshot(
    cluster("one"),
    cluster("two"),
    host("h1", cluster="one"),
    host("h2", cluster="two"),
    vm("a", "h1", cluster="one"),
    vm("b", "h2", cluster="two"),
)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (event(10350, cluster="one"), {"one"}),
        (event(10352, cluster="two"), {"two"}),
        (event(10382), {"one", "two"}),
        (event(9912), {"one", "two"}),
        (event(811, cluster="one"), {"one"}),
        (event(12, host="h2"), {"two"}),
        (event(61, vm="a"), {"one"}),
        (event(63, vm="b", correlation_id="theirs"), {"two"}),
        (event(63, vm="b", correlation_id="ours"), set()),
        (event(9802, cluster="one"), set()),
        (event(30), set()),
    ],
    ids=lambda value: str(value.code) if isinstance(value, EngineEvent) else "",
)
def test_events(one: EngineEvent, expected: set[str]) -> None:
    assert reported([one], STATE, {"ours"}) == expected


def with_vm(**fields: Any) -> Snapshot:
    return replace(STATE, vms=(replace(STATE.vms[0], **fields), STATE.vms[1]))


def with_host(**fields: Any) -> Snapshot:
    return replace(STATE, hosts=(replace(STATE.hosts[0], **fields), STATE.hosts[1]))


@pytest.mark.parametrize(
    ("after", "ours", "clusters"),
    [
        (replace(STATE, affinity_groups=(group("g", APART, "a b", cluster="one"),)), "", {"one"}),
        (with_vm(host=None, status="down"), "", {"one"}),
        (with_vm(memory_mb=4096), "", {"one"}),
        (with_vm(host="h2"), "", {"one"}),
        (with_vm(host="h2"), "a", set()),
        (with_host(status="maintenance"), "", {"one"}),
        (replace(STATE, clusters=(cluster("one", upgrade_mode=True), cluster("two"))), "", {"one"}),
        (STATE, "", set()),
        (with_vm(usage_cpu_percent=99.0), "", set()),
        (with_vm(status="migrating"), "", set()),
        (with_host(free_mb=1, cpu_percent=99.0), "", set()),
    ],
    ids=[
        *("a group", "a stop", "a size", "a migration", "our own migration", "a host", "the cluster"),
        *("nothing", "a busy VM", "a migration under way", "a busy host"),
    ],
)
def test_where_snapshots_differ_in_what_counts(after: Snapshot, ours: str, clusters: set[str]) -> None:
    assert changed(STATE, after, set(ours)) == clusters


PATIENCE_SECONDS = 30.0


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    parts = getattr(request, "param", (host("h1"), vm("a")))
    return Engine.from_snapshot(snapshot(*parts), clock=START, settings=PROMPT)


@pytest.fixture
def changes(server: Server, tmp_path: Path) -> Iterator[Changes]:
    config = configured(tmp_path, server.api_url, {})
    with EngineConnection(config.engine) as connection:
        found = Changes(config, connection, 0.05, lambda: True)
        found.watch()
        yield found
        found.close()


def next_of(changes: Changes) -> Changed:
    assert wait([changes.fileno()], PATIENCE_SECONDS)
    return changes.pop_changes()


def test_first_it_says_that_anything_may_have_happened_then_each_event_once(
    engine: Engine, changes: Changes
) -> None:
    assert next_of(changes).missed
    engine.vms.start("a")
    assert [event.code for event in next_of(changes).events]
    engine.vms.stop("a")
    assert 33 in [event.code for event in next_of(changes).events]
    assert not changes.pop_changes().events


def test_it_can_be_woken_though_nothing_happened(changes: Changes) -> None:
    next_of(changes)
    changes.wake()
    assert next_of(changes) == Changed(published=False, events=(), missed=False)


@pytest.mark.nightly
def test_an_engine_that_takes_longer_than_a_person_waits_is_read_all_the_same(
    server: Server, tmp_path: Path
) -> None:
    server.disturbances.add(Disturbance(path="/vms", delay_seconds=DEFAULT_DEADLINE_SECONDS + 1.0))
    found = StateReading(configured(tmp_path, server.api_url, {})).whole()
    assert [vm.id for vm in found.vms] == ["a"]


#: A second is five times 0.2.
SECONDS = st.floats(0, 100) | st.sampled_from([0.0, 0.19, 0.2, 0.21, 1.0])


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=5))
def test_two_readings_are_a_second_apart_and_five_times_what_one_takes(
    looks: list[tuple[float, float]],
) -> None:
    clock = Clock(1000.0)
    pace = Pace(clock)
    assert pace.earliest == clock.now
    for takes, waits in looks:
        began = clock.now
        clock.now += takes
        pace.end_turn(began)
        ended = clock.now
        assert pace.turn_seconds == pytest.approx(takes)
        assert pace.earliest == pytest.approx(ended + max(1.0, 5 * takes))
        clock.now += waits
        assert pace.earliest == pytest.approx(max(clock.now, ended + 1.0, ended + 5 * takes))


#: It hears of nothing by looking again: until then a test has long ended.
PATIENT = '[enforcer]\nmode = "enforce"\nstrategy = "greedy"\ninterval_seconds = 3600\npoll_seconds = 0.1\n'
#: How long a new rule waits for the first migration at the most, on a machine that is busy with tests.
PROMPT_SECONDS = 5.0
PAIR = host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1")


def part(engine: Engine) -> None:
    """Make a group that parts the two."""
    rule = AffinityRule(enabled=True, positive=False, enforcing=True)
    engine.affinity_groups.add("cluster1", name="apart", vms_rule=rule, vms=["a", "b"])


def migrating(engine: Engine) -> bool:
    return any(one.status == "migrating" for one in engine.snapshot().vms)


@pytest.mark.parametrize("engine", [PAIR], indirect=True)
@pytest.mark.system
@pytest.mark.timing
@pytest.mark.parametrize("published", [False, True], ids=["the engine's events", "the inventory service"])
def test_two_vms_that_a_new_group_parts_are_parted_at_once(
    engine: Engine, server: Server, tmp_path: Path, published: bool
) -> None:
    """Each way alone: the enforcer that reads what is published asks for no events within the test."""
    how = f"{PATIENT}events_seconds = {3600 if published else 0.5}\n"
    file = write_configuration(tmp_path, server.api_url, more=how)
    with inventory_running(file) if published else nullcontext(), running(file) as daemon:
        eventually(lambda: "every rule is satisfied" in daemon.log)
        part(engine)
        began = time.monotonic()
        eventually(lambda: migrating(engine))
        took = time.monotonic() - began
        engine.advance(60)
        eventually(lambda: "done" in daemon.log)
        daemon.end()
    assert {one.host for one in engine.snapshot().vms} == {"h1", "h2"}
    assert took < PROMPT_SECONDS


def test_the_end_of_a_pause_is_heard_long_before_the_next_look(tmp_path: Path) -> None:
    state, settings = (
        snapshot(*PAIR, group("apart", APART, "a b")),
        {"mode": "enforce", "interval_seconds": 3600},
    )
    with bench(tmp_path, state, settings) as made, made.enforcing() as daemon:
        made.pause()
        made.run(daemon, 60.0)
        assert made.intents() == []
        made.resume()
        made.run(daemon, 120.0)
        assert [intent.vm for intent in made.intents()] == ["a"]
