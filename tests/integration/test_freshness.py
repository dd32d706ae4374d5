"""A decision of the proxy sees what happened a second ago, whatever else happens, and an intent at once.

The engine is a simulated one in which time passes, and much happens besides what a test is about.
"""

import itertools
import os
import xmlrpc.client
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.model import Vm
from ovirt_placement.store.enforcer.intents import Store
from ovirt_simulator.core.backend import USUAL
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.http.server import serve
from tests import builders as build
from tests.configuration import write_configuration
from tests.placement.inventory.running import running
from tests.plugins.proxy_process import running_proxy
from tests.proxy.running import eventually
from tests.repeating import repeating
from tests.stored import prepared

#: How simulated time moves on; never faster than real time, in which the inventory lives.
STEP_SECONDS = 0.05
PATIENCE_SECONDS = 60.0
HOSTS = ["h1", "h2", "h3", "h4"]
#: The VM that is to be placed, and the one that it must not meet.
PROBE, OTHER = "probe", "other"
BUSY = tuple(f"busy{number}" for number in range(60))
EVENTS_PER_SECOND = 18.0
START = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 2

SETTINGS = replace(
    USUAL, launch_seconds=0.3, boot_seconds=0.5, stop_seconds=0.2, migration_seconds=0.8,
    hand_over_seconds=0.2, state_lag_seconds=0.9, late_event_probability=0.5,
)  # fmt: skip

#: One engine, inventory and proxy serve all of them.
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("freshness")]


@dataclass
class World:
    engine: Engine
    proxy: xmlrpc.client.ServerProxy
    store: Store

    def other(self) -> Vm:
        """The other VM as the engine would show it now."""
        return self.engine.queries.state.vms[OTHER]

    def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until something holds."""
        eventually(holds, PATIENCE_SECONDS)

    def let_pass(self, seconds: float) -> None:
        ends = self.engine.queries.now + timedelta(seconds=seconds)
        self.until(lambda: self.engine.queries.now >= ends)

    def refused(self) -> set[str]:
        """The hosts that the proxy refuses to the probe now, on account of where the other VM is."""
        kept = self.proxy.runFilters(["AffinityFilter"], HOSTS, PROBE, {})
        assert kept["result_code"] == 0
        return set(HOSTS) - set(kept["result"])


@contextmanager
def living(engine: Engine) -> Iterator[None]:
    """Let time pass, in which each busy VM in turn starts if it is down, and else moves or stops."""
    vms, deeds = engine.vms, itertools.cycle([engine.vms.migrate, engine.vms.stop])
    turns = itertools.cycle(BUSY)

    def step() -> None:
        busy = next(turns)
        with suppress(Rejected):  # it is under way already
            (vms.start if engine.queries.state.vms[busy].status == "down" else next(deeds))(busy)
        engine.advance(STEP_SECONDS)

    with repeating(step, every=STEP_SECONDS):
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("freshness")
    state = build.snapshot(
        *(build.host(host, free_mb=1 << 20, memory_mb=1 << 20) for host in HOSTS), build.vm(PROBE),
        build.vm(OTHER), *(build.vm(vm, HOSTS[at % 4] if at % 2 else None) for at, vm in enumerate(BUSY)),
        build.group("strangers", build.APART, f"{PROBE} {OTHER}"),
    )  # fmt: skip
    engine = Engine.from_snapshot(state, clock=START, seed=1, settings=SETTINGS)
    with closing(serve(engine)) as server, living(engine):
        # A machine that is busy may take longer than a decision usually waits for engine and store.
        file = write_configuration(
            folder,
            server.api_url,
            engine='name = "east"',
            inventory="engine_wait_ms = 10000",
            store="patience_seconds = 10.0",
        )
        environment = {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(file)}
        with running(file), running_proxy(environment) as proxy:
            store = Store(config.load(file, {}).store.url, engine="east", patience_seconds=30)
            with closing(store):
                yield World(engine, proxy, store)


@pytest.fixture(autouse=True)
def _at_rest(world: World) -> Iterator[None]:
    """A test that fails leaves nothing to the next one."""
    yield
    if world.other().status != "down":
        world.engine.vms.stop(OTHER)
        world.until(lambda: world.other().status == "down")


def test_what_started_moved_or_stopped_a_second_ago_is_seen(world: World) -> None:
    vms = world.engine.vms
    for _ in range(ROUNDS):
        vms.start(OTHER, host_id="h3")
        world.until(lambda: world.other().host == "h3")
        world.let_pass(1.0)
        assert world.refused() == {"h3"}

        world.until(lambda: world.other().status == "up")
        vms.migrate(OTHER, host_id="h2")
        world.until(lambda: (world.other().host, world.other().status) == ("h2", "up"))
        world.let_pass(1.0)
        assert world.refused() == {"h2"}

        vms.stop(OTHER)
        world.until(lambda: world.other().host is None)
        world.let_pass(1.0)
        assert world.refused() == set()
    elapsed = (world.engine.queries.now - START).total_seconds()
    assert len(world.engine.queries.events()) >= EVENTS_PER_SECOND * elapsed


def test_an_intent_is_seen_at_once_and_never_stands_in_its_own_way(world: World) -> None:
    intent = prepared(
        world.store, vm=OTHER, cluster=build.CLUSTER, source=None, target="h2", correlation_id="meant"
    )
    assert world.refused() == {"h2"}
    world.store.fail(intent.id, "changed its mind")
    assert world.refused() == set()

    own = prepared(
        world.store, vm=PROBE, cluster=build.CLUSTER, source=None, target="h3", correlation_id="own"
    )
    assert world.refused() == set()
    world.store.fail(own.id, "changed its mind")
