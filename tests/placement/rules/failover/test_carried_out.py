"""A verdict carried out: hosts of a simulated engine fail, and VMs are started as the witness says.

The simulator has filters of its own and knows nothing of the rules.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.check import check
from ovirt_placement.rules.failover.outcomes import Domain, Survival
from ovirt_placement.rules.failover.restart_check import RestartOrder
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.generate import Sizes, generate

#: Longer than a crash needs to be seen and fenced, and VMs to start.
A_MINUTE = 60.0
#: The event of a VM that the engine restarts.
RESTARTED = 506


def drawn(seed: int) -> Snapshot:
    """A cluster of a few hosts that are so full that failures are now survived, now not."""
    dice = random.Random(seed)
    sizes = Sizes(hosts=dice.randint(3, 8), vms=dice.randint(20, 80), groups=dice.randint(0, 12), ha=0.4)
    state = generate(sizes, seed)
    left = dice.choice([0.25, 0.4, 0.6, 1.0])
    return replace(
        state, hosts=tuple(replace(host, free_mb=int(host.free_mb * left)) for host in state.hosts)
    )


def engine_of(state: Snapshot, *, ha: bool) -> Engine:
    """An engine that restarts HA VMs by itself, or waits for orders."""
    vms = tuple(vm if ha else replace(vm, ha=False) for vm in state.vms)
    return Engine.from_snapshot(
        replace(state, vms=vms), clock=datetime(2026, 1, 1, tzinfo=UTC), settings=PROMPT
    )


def crash(engine: Engine, hosts: tuple[str, ...]) -> None:
    for host in hosts:
        engine.hosts.fail(host)
    engine.advance(A_MINUTE)


@pytest.mark.parametrize("part", range(8))
def test_witness_is_carried_out_and_loss_shows(part: int) -> None:
    survived = lost = 0
    for seed in range(part * 25, (part + 1) * 25):
        state = drawn(seed)
        cluster = state.clusters[0].id
        dice = random.Random(seed)
        failing = frozenset(dice.sample([host.id for host in state.hosts], dice.randint(1, 2)))
        found = check(state, cluster, domains=(Domain(None, failing),))
        assert found.safe is not None
        if found.safe:
            survived += 1
            restart_as_reported(state, *found.survivals)
        else:
            lost += 1
            restart_by_itself_in_vain(state, found.losses[0].hosts)
    assert survived > 3
    assert lost > 3


def restart_as_reported(state: Snapshot, witness: Survival) -> None:
    protected = {vm.id for vm in state.vms if vm.ha and vm.host in witness.hosts}
    assert witness.homes.keys() == protected
    engine = engine_of(state, ha=False)
    crash(engine, witness.hosts)
    for vm, home in witness.homes.items():
        engine.vms.start(vm, host_id=home)
    engine.advance(A_MINUTE)
    after = engine.snapshot().vm_by_id
    assert {vm: after[vm].host for vm in protected} == witness.homes
    assert {after[vm].status for vm in protected} <= {"up"}


def restart_by_itself_in_vain(state: Snapshot, hosts: tuple[str, ...]) -> None:
    engine = engine_of(state, ha=True)
    crash(engine, hosts)
    engine.advance(10 * A_MINUTE)
    after = engine.snapshot().vm_by_id
    assert any(after[vm.id].status == "down" for vm in state.vms if vm.ha and vm.host in hosts)


def test_an_engine_restarts_in_the_order_that_the_proof_has() -> None:
    several = 0
    for seed in range(8):
        dice = random.Random(seed)
        state = drawn(seed)
        vms = tuple(replace(vm, ha_priority=dice.choice([1, 50, 100])) for vm in state.vms)
        state = replace(state, vms=vms)
        busiest = max(state.hosts, key=lambda host: sum(vm.ha and vm.host == host.id for vm in vms))
        engine = engine_of(state, ha=True)
        crash(engine, (busiest.id,))
        engine.advance(A_MINUTE)
        events = [event for event in reversed(engine.queries.events()) if event.code == RESTARTED]
        # Each is reported when it begins and when it is up.
        begun = list(dict.fromkeys(event.vm.id for event in events if event.vm is not None))
        several += len({state.vm_by_id[vm].ha_priority for vm in begun}) > 1
        assert RestartOrder(state).ordered(begun) == tuple(begun)
    assert several > 3
