"""What is said of failovers, of `why` and of plans' room is what the engine makes of it, on drawn clusters.

Hosts within 200 MiB of full stand in an engine with an account of its own; some have been too busy for long,
and of some there are no statistics. Losses and whole courses come true in test_what_if_comes_true.
"""

import random
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from ovirt_placement.answers.placement import why
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.rules.failover.check import check
from ovirt_placement.rules.failover.outcomes import Domain, Survival
from ovirt_placement.rules.failover.restart_check import RestartOrder
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.generate import Sizes, generate
from tests import builders as build
from tests.builders import needed_mb

CLOCK = datetime(2030, 1, 1, tzinfo=UTC)
#: How far the room on a host is from what some VM needs, in MiB.
NEAR_MB = 200
#: Longer than a crash needs to be seen and fenced, and VMs to start.
A_MINUTE = 60.0


def drawn(seed: int) -> Snapshot:
    """A few hosts, VMs of all sizes that run and some that are down, and hard groups, violated or not."""
    dice = random.Random(f"full hosts {seed}")
    hosts = [f"h{number}" for number in range(dice.randint(3, 6))]
    vms = [_vm(dice, f"v{number}", dice.choice([*hosts, None])) for number in range(dice.randint(4, 14))]
    rooms = {
        name: max(
            0, needed_mb(dice.choice(vms)) * dice.choice([1, 1, 1, 2]) + dice.randint(-NEAR_MB, NEAR_MB)
        )
        for name in hosts
    }
    groups = [
        build.group(
            f"g{number}",
            dice.choice([build.APART, build.TOGETHER]),
            " ".join(one.id for one in dice.sample(vms, 2)),
        )
        for number in range(dice.randint(0, 3))
    ]
    return build.snapshot(
        *(
            build.host(
                name,
                free_mb=rooms[name],
                cores=dice.choice([2, 4, 16]),
                cpu_percent=dice.choice([20, 20, 20, 20, 20, 85, 95, None]),
                measured=True,
            )
            for name in hosts
        ),
        *vms,
        *groups,
    )


def _vm(dice: random.Random, name: str, on: str | None) -> Vm:
    memory = dice.choice([512, 1000, 2048, 4096, 9000])
    return build.vm(
        name,
        on,
        memory_mb=memory,
        guaranteed_mb=memory,
        vcpus=dice.choice([1, 2, 4, 8]),
        io_threads=dice.choice([0, 1, 4]),
        video_mb=dice.choice([0, 16, 64]),
        ha=dice.random() < 0.5,
        usage_cpu_percent=1,
    )


def engine_of(state: Snapshot, *, restarts: bool = True, minutes: int = 3) -> Engine:
    """An engine that restarts HA VMs by itself, or waits for orders, after some minutes."""
    vms = state.vms if restarts else tuple(replace(vm, ha=False) for vm in state.vms)
    engine = Engine.from_snapshot(replace(state, vms=vms), clock=CLOCK, settings=PROMPT)
    engine.advance(minutes * A_MINUTE)
    return engine


def starts(state: Snapshot, vm: str, host: str) -> bool:
    try:
        engine_of(state).vms.start(vm, host_id=host)
    except Rejected:
        return False
    return True


PARTS = [
    pytest.param(range(12), id="12 clusters"),
    pytest.param(range(12, 500), id="488 clusters", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("seeds", PARTS)
def test_a_vm_starts_where_why_accepts_it_and_nowhere_else(seeds: range) -> None:
    accepted = refused = 0
    for seed in seeds:
        state = engine_of(drawn(seed)).snapshot()
        for vm in (one for one in state.vms if one.host is None):
            for answer in why(state, vm, state.hosts).hosts:
                by_engine = any(
                    unit.internal for reason in answer.reasons if reason.veto for unit in reason.by
                )
                if (
                    answer.accepted or by_engine
                ):  # what our units alone refuse, an engine without them accepts
                    assert starts(state, vm.id, answer.host.id) is answer.accepted, (seed, vm.id, answer)
                accepted, refused = accepted + answer.accepted, refused + by_engine
    assert min(accepted, refused) > len(seeds)


@pytest.mark.parametrize("seeds", PARTS)
def test_each_migration_of_a_plan_is_taken(seeds: range) -> None:
    taken = 0
    for seed in seeds:
        state = engine_of(drawn(seed)).snapshot()
        engine = engine_of(state)
        for step in make_plan(state, build.CLUSTER).steps:
            engine.vms.migrate(step.vms[0], host_id=step.target, closure=len(step.vms) > 1)
            engine.advance(10 * A_MINUTE)
            after = engine.snapshot().vm_by_id
            assert {after[vm].host for vm in step.vms} == {step.target}, seed
            taken += 1
    assert taken > len(seeds) / 20


@pytest.mark.parametrize("seeds", PARTS)
def test_what_is_safe_restarts(seeds: range) -> None:
    safe = 0
    for seed in seeds:
        state = engine_of(drawn(seed)).snapshot()
        failing = random.Random(seed).choice(state.hosts).id
        found = check(state, build.CLUSTER, domains=(Domain(None, frozenset({failing})),))
        for survival in found.survivals if found.safe else ():
            restart_as_reported(state, survival, minutes=3)
            safe += bool(survival.homes)
    assert safe > len(seeds) / 20


# -- Witnesses are carried out on generated clusters, and losses show: the engine has filters of its own.
#: The event of a VM that the engine restarts.
RESTARTED = 506


def generated(seed: int) -> Snapshot:
    """A cluster of a few hosts that are so full that failures are now survived, now not."""
    dice = random.Random(seed)
    sizes = Sizes(hosts=dice.randint(3, 8), vms=dice.randint(20, 80), groups=dice.randint(0, 12), ha=0.4)
    state = generate(sizes, seed)
    left = dice.choice([0.25, 0.4, 0.6, 1.0])
    return replace(
        state, hosts=tuple(replace(host, free_mb=int(host.free_mb * left)) for host in state.hosts)
    )


def crash(engine: Engine, hosts: tuple[str, ...]) -> None:
    for name in hosts:
        engine.hosts.fail(name)
    engine.advance(A_MINUTE)


@pytest.mark.parametrize("part", range(8))
def test_witness_is_carried_out_and_loss_shows(part: int) -> None:
    survived = lost = 0
    for seed in range(part * 25, (part + 1) * 25):
        state = generated(seed)
        cluster = state.clusters[0].id
        dice = random.Random(seed)
        failing = frozenset(dice.sample([host.id for host in state.hosts], dice.randint(1, 2)))
        found = check(state, cluster, domains=(Domain(None, failing),))
        assert found.safe is not None
        if found.safe:
            survived += 1
            restart_as_reported(state, *found.survivals, minutes=0)
        else:
            lost += 1
            restart_by_itself_in_vain(state, found.losses[0].hosts)
    assert survived > 3
    assert lost > 3


def restart_as_reported(state: Snapshot, witness: Survival, minutes: int) -> None:
    protected = {vm.id for vm in state.vms if vm.ha and vm.host in witness.hosts}
    assert witness.homes.keys() == protected
    engine = engine_of(state, restarts=False, minutes=minutes)
    crash(engine, witness.hosts)
    for name, home in witness.homes.items():
        engine.vms.start(name, host_id=home)
    engine.advance(A_MINUTE)
    after = engine.snapshot().vm_by_id
    assert {vm: after[vm].host for vm in protected} == witness.homes
    assert {after[vm].status for vm in protected} <= {"up"}


def restart_by_itself_in_vain(state: Snapshot, hosts: tuple[str, ...]) -> None:
    engine = engine_of(state, minutes=0)
    crash(engine, hosts)
    engine.advance(10 * A_MINUTE)
    after = engine.snapshot().vm_by_id
    assert any(after[vm.id].status == "down" for vm in state.vms if vm.ha and vm.host in hosts)


def test_an_engine_restarts_in_the_order_that_the_proof_has() -> None:
    several = 0
    for seed in range(8):
        dice = random.Random(seed)
        state = generated(seed)
        vms = tuple(replace(vm, ha_priority=dice.choice([1, 50, 100])) for vm in state.vms)
        state = replace(state, vms=vms)
        busiest = max(state.hosts, key=lambda host: sum(vm.ha and vm.host == host.id for vm in vms))
        engine = engine_of(state, minutes=0)
        crash(engine, (busiest.id,))
        engine.advance(A_MINUTE)
        events = [event for event in reversed(engine.queries.events()) if event.code == RESTARTED]
        # Each is reported when it begins and when it is up.
        begun = list(dict.fromkeys(event.vm.id for event in events if event.vm is not None))
        several += len({state.vm_by_id[vm].ha_priority for vm in begun}) > 1
        assert RestartOrder(state).ordered(begun) == tuple(begun)
    assert several > 3
