"""A decision of the proxy sees what happened a second ago, whatever else happens, and an intent at once.

The engine is a simulated one in which time passes, and much happens besides what a test is about.
"""

import itertools
import os
import xmlrpc.client
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.store.enforcer.intents import Store
from ovirt_simulator.core.backend import USUAL, Settings
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


class LivingEngine:
    """An engine behind real HTTP; `busy` VMs start, move and stop all the time."""

    def __init__(self, state: Snapshot, settings: Settings, busy: tuple[str, ...], per_second: float) -> None:
        self.engine = Engine.from_snapshot(
            state, clock=datetime(2026, 1, 1, tzinfo=UTC), seed=1, settings=settings
        )
        self.server = serve(self.engine)
        self.elapsed = 0.0
        self._turns = itertools.cycle(busy)
        self._per_second = per_second
        self._owed = 0.0

    def vm(self, vm_id: str) -> Vm:
        """The VM as the engine would show it now."""
        found = self.engine.queries.state.vms.get(vm_id)
        assert found is not None
        return found

    def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until something holds."""
        eventually(holds, PATIENCE_SECONDS)

    def let_pass(self, seconds: float) -> None:
        began = self.elapsed
        self.until(lambda: self.elapsed >= began + seconds)

    def events_per_second(self) -> float:
        return len(self.engine.queries.events()) / self.elapsed

    def step(self) -> None:
        """Let a little time pass, in which what is busy logs its share of events."""
        before = len(self.engine.queries.events())
        for vm_id in itertools.islice(self._turns, max(0, round(self._owed))):
            self._stir(vm_id)
        self.engine.advance(STEP_SECONDS)
        self._owed += self._per_second * STEP_SECONDS - (len(self.engine.queries.events()) - before)
        self.elapsed += STEP_SECONDS

    def _stir(self, vm_id: str) -> None:
        """Start what is down, and move or stop what is up, in turns."""
        vm = self.vm(vm_id)
        try:
            if vm.status == "down":
                self.engine.vms.start(vm_id)
            elif vm.status == "up" and (len(vm_id) + int(self.elapsed)) % 2:
                self.engine.vms.migrate(vm_id)
            elif vm.status == "up":
                self.engine.vms.stop(vm_id)
        except Rejected:
            return  # it is under way already


@contextmanager
def living(
    state: Snapshot, settings: Settings, busy: tuple[str, ...] = (), per_second: float = 0.0
) -> Iterator[LivingEngine]:
    engine = LivingEngine(state, settings, busy, per_second)
    with closing(engine.server), repeating(engine.step, every=STEP_SECONDS):
        yield engine


HOSTS = ["h1", "h2", "h3", "h4"]
#: The VM that is to be placed, and the one that it must not meet.
PROBE, OTHER = "probe", "other"
BUSY = tuple(f"busy{number}" for number in range(60))
EVENTS_PER_SECOND = 20.0
ROUNDS = 2

SETTINGS = replace(
    USUAL,
    launch_seconds=0.3,
    boot_seconds=0.5,
    stop_seconds=0.2,
    migration_seconds=0.8,
    hand_over_seconds=0.2,
    state_lag_seconds=0.9,
    late_event_probability=0.5,
)

#: One engine, inventory and proxy serve all of them.
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("freshness")]


@dataclass
class World:
    engine: LivingEngine
    proxy: xmlrpc.client.ServerProxy
    store: Store

    def refused(self) -> set[str]:
        """The hosts that the proxy refuses to the probe now, on account of where the other VM is."""
        kept = self.proxy.runFilters(["AffinityFilter"], HOSTS, PROBE, {})
        assert kept["result_code"] == 0
        return set(HOSTS) - set(kept["result"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("freshness")
    state = build.snapshot(
        *(build.host(host, free_mb=1 << 20, memory_mb=1 << 20) for host in HOSTS),
        build.vm(PROBE),
        build.vm(OTHER),
        *(build.vm(vm, HOSTS[at % 4] if at % 2 else None) for at, vm in enumerate(BUSY)),
        build.group("strangers", build.APART, f"{PROBE} {OTHER}"),
    )
    with living(state, SETTINGS, BUSY, EVENTS_PER_SECOND) as engine:
        # A machine that is busy may take longer than a decision usually waits for engine and store.
        file = write_configuration(
            folder, engine.server.api_url, inventory="engine_wait_ms = 10000", store="patience_seconds = 10.0"
        )
        environment = {**os.environ, "OVIRT_PLACEMENT_CONFIG": str(file)}
        with running(file), running_proxy(environment) as proxy:
            store = Store(config.load(file, {}).store.url, engine="default", patience_seconds=30)
            yield World(engine, proxy, store)
            store.close()


@pytest.fixture(autouse=True)
def _at_rest(world: World) -> Iterator[None]:
    """A test that fails leaves nothing to the next one."""
    yield
    if world.engine.vm(OTHER).status != "down":
        world.engine.engine.vms.stop(OTHER)
        world.engine.until(lambda: world.engine.vm(OTHER).status == "down")


def test_what_started_moved_or_stopped_a_second_ago_is_seen(world: World) -> None:
    engine, vms = world.engine, world.engine.engine.vms
    for _ in range(ROUNDS):
        vms.start(OTHER, host_id="h3")
        engine.until(lambda: engine.vm(OTHER).host == "h3")
        engine.let_pass(1.0)
        assert world.refused() == {"h3"}

        engine.until(lambda: engine.vm(OTHER).status == "up")
        vms.migrate(OTHER, host_id="h2")
        engine.until(lambda: (engine.vm(OTHER).host, engine.vm(OTHER).status) == ("h2", "up"))
        engine.let_pass(1.0)
        assert world.refused() == {"h2"}

        vms.stop(OTHER)
        engine.until(lambda: engine.vm(OTHER).host is None)
        engine.let_pass(1.0)
        assert world.refused() == set()
    assert engine.events_per_second() >= EVENTS_PER_SECOND * 0.9


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
