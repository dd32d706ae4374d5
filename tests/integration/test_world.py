"""What `World` says that becomes of a state is what a simulated engine makes of it, action by action."""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.elements.placement import World
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests.integration.test_ha_check import A_MINUTE, drawn, engine_of

ACTIONS = 12

PARTS = [
    pytest.param(range(30), id="30 clusters"),
    pytest.param(range(30, 400), id="370 clusters", marks=pytest.mark.nightly),
]


def seen(state: Snapshot) -> tuple[object, ...]:
    """What a plan reckons with: where VMs run and are going, and what hosts that are up have left."""
    return (
        {vm.id: (vm.host, vm.status == "down") for vm in state.vms},
        {vm.id: state.pending_hosts.get(vm.id, ()) for vm in state.vms},
        {host.id: (host.status, host.free_mb if host.up else 0) for host in state.hosts},
    )


def migrated(engine: Engine, dice: random.Random) -> Iterator[tuple[str, World]]:
    before = engine.snapshot()
    vm, target = dice.choice(before.vms).id, dice.choice(before.hosts).id
    engine.vms.migrate(vm, host_id=target)
    yield "migrating", World(before).begun([vm], target)
    engine.advance(10 * A_MINUTE)
    yield "migrated", World(before).moved([vm], target)


def arrived(engine: Engine, dice: random.Random) -> Iterator[tuple[str, World]]:
    vm, target = (dice.choice(some).id for some in (engine.snapshot().vms, engine.snapshot().hosts))
    engine.vms.migrate(vm, host_id=target)
    while dice.random() < 0.9 and engine.snapshot().vm_by_id[vm].host != target:
        engine.advance(0.4)  # until the target has it, perhaps, and has not reported it up
    under_way = engine.snapshot()
    engine.advance(10 * A_MINUTE)
    yield "arrived", World(under_way).arrived({vm: target}, source_freed=True)


def started(engine: Engine, dice: random.Random) -> Iterator[tuple[str, World]]:
    before = engine.snapshot()
    vm, host = dice.choice(before.vms).id, dice.choice(before.hosts).id
    engine.vms.start(vm, host_id=host)
    engine.advance(A_MINUTE)
    yield "running", World(before).running({vm: host})


def failed(engine: Engine, dice: random.Random) -> Iterator[tuple[str, World]]:
    yield from _failing(engine, dice.choice(engine.snapshot().hosts).id)


def failed_on_the_way(engine: Engine, dice: random.Random) -> Iterator[tuple[str, World]]:
    """One of the two hosts of a migration."""
    before = engine.snapshot()
    vm, target = dice.choice(before.vms), dice.choice(before.hosts).id
    engine.vms.migrate(vm.id, host_id=target)
    yield from _failing(engine, dice.choice([vm.host or "", target]))
    engine.advance(10 * A_MINUTE)


def _failing(engine: Engine, host: str) -> Iterator[tuple[str, World]]:
    before = engine.snapshot()
    if before.host_by_id[host].up and len([one for one in before.hosts if one.up]) > 2:
        engine.hosts.fail(host)
        engine.advance(A_MINUTE)  # only then it is known that its VMs are down
        yield "failed", World(before).failed(frozenset({host}))


def deactivated(engine: Engine, dice: random.Random) -> Iterator[tuple[str, World]]:
    """An empty host, which comes back afterwards."""
    before = engine.snapshot()
    host = dice.choice(before.hosts)
    if host.up and not before.vms_of_host.get(host.id) and len([one for one in before.hosts if one.up]) > 2:
        engine.hosts.deactivate(host.id)
        engine.advance(A_MINUTE)
        yield "deactivated", World(before).deactivated(frozenset({host.id}))
        engine.hosts.activate(host.id)
        engine.advance(10 * A_MINUTE)


Action = Callable[[Engine, random.Random], Iterator[tuple[str, World]]]
EVERY: tuple[Action, ...] = (
    migrated, migrated, migrated, arrived, started, started, failed, failed_on_the_way, deactivated,
)  # fmt: skip


@pytest.mark.parametrize("seeds", PARTS)
def test_after_every_action_the_engine_shows_that_world(seeds: range) -> None:
    compared: set[str] = set()
    for seed in seeds:
        dice = random.Random(f"world {seed}")
        engine = engine_of(drawn(seed), restarts=False)
        for _ in range(ACTIONS):
            with suppress(Rejected):  # what the engine refuses changes nothing
                for what, world in dice.choice(EVERY)(engine, dice):
                    assert seen(world.snapshot) == seen(engine.snapshot()), (seed, what)
                    compared.add(what)
    assert compared == {"migrating", "migrated", "arrived", "running", "failed", "deactivated"}
