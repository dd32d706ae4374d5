"""What `ha-check` says of a failover, and `why` and `plan` of room, is what the engine makes of it.

Each story has a cluster of its own with one highly available VM on its first host, on one living engine.
Hosts within 200 MiB of full stand in an engine with an account of its own; some have been too busy for long,
and of some there are no statistics.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.answers.placement import why
from ovirt_placement.cli.main import main
from ovirt_placement.model import SchedulingPolicy, Snapshot, Vm
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.rules.failover.check import check
from ovirt_placement.rules.failover.outcomes import Domain
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests import builders as build
from tests.builders import APART, needed_mb
from tests.integration.world import World, running
from tests.placement.cli.documents import plain

VDS_INITIATED_RUN_VM_FAILED = 507

POLICY = SchedulingPolicy(filters=("AffinityFilter", "HostAffinityFilter"))
KEYED = SchedulingPolicy(filters=(*POLICY.filters, "PlacementKeyFilter"))
IDLE = {"memory_mb": 8192, "guaranteed_mb": 1024, "usage_mem_percent": 10, "video_mb": build.VGA_MB}

#: One engine serves all of them.
pytestmark = pytest.mark.xdist_group("ha-check")


def story(
    name: str, vm: dict[str, Any], *homes: dict[str, Any], policy: SchedulingPolicy = POLICY
) -> list[build.Part]:
    """A cluster NAME with hosts NAME-h1 ..., of which the first runs the VM NAME-vm."""
    hosts = enumerate(({}, *homes), 1)
    return [
        build.cluster(name, ha_reservation=True, scheduling_policy=policy),
        *(build.host(f"{name}-h{at}", cluster=name, **fields) for at, fields in hosts),
        build.vm(f"{name}-vm", f"{name}-h1", cluster=name, ha=True, **vm),
    ]


def state() -> Snapshot:
    return build.snapshot(
        *story("room", IDLE, {"free_mb": 8304}),
        *story("memory", IDLE, {"free_mb": 3000}),
        *story("cores", {"vcpus": 8}, {"cores": 4}),
        *story("keys", {"memory_mb": 5500}, {"memory_mb": 6000}, policy=KEYED),
        *story("apart", {}, {}),
        build.vm("apart-foe", "apart-h2", cluster="apart"),
        build.group("apart-group", APART, "apart-vm apart-foe", cluster="apart"),
    )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("world"), state()) as world:
        yield world


def ha_check(engine: World, capsys: pytest.CaptureFixture[str], cluster: str) -> Any:
    main(["ha-check", "--cluster", cluster, "--json", "--config", str(engine.config)])
    (found,) = plain(capsys.readouterr().out)["clusters"]
    return found


@pytest.mark.system
def test_safe_is_a_vm_that_starts_again(engine: World, capsys: pytest.CaptureFixture[str]) -> None:
    found = ha_check(engine, capsys, "room")
    assert found["safe"] is True
    homes = [{"vm": "room-vm", "host": "room-h2"}]
    assert {"hosts": ["room-h1"], "domains": [], "homes": homes} in found["survivals"]
    engine.fail("room-h1")
    engine.until_on("room-vm", "room-h2")


@pytest.mark.system
@pytest.mark.parametrize(
    ("name", "by_engine"), [("memory", True), ("cores", True), ("keys", True), ("apart", False)]
)
def test_unsafe_is_a_vm_that_stays_down(
    engine: World, capsys: pytest.CaptureFixture[str], name: str, *, by_engine: bool
) -> None:
    """The engine's own arithmetic, with hard affinity and pinning, sees but the last."""
    found = ha_check(engine, capsys, name)
    assert found["safe"] is False
    (loss,) = found["losses"]
    assert (loss["hosts"], loss["domains"], loss["unplaced"]) == ([f"{name}-h1"], [], [f"{name}-vm"])
    assert [one["vm"] for one in loss["because"]] == [f"{name}-vm"]
    assert found["by_engine"]["safe"] is by_engine
    engine.fail(f"{name}-h1")
    engine.until_reported(VDS_INITIATED_RUN_VM_FAILED, f"{name}-vm")
    assert engine.is_down(f"{name}-vm")

    def named() -> bool:
        outside = ha_check(engine, capsys, name)["outside"]
        return [(one["vm"], one["status"]) for one in outside] == [(f"{name}-vm", "down")]

    engine.until(named, f"{name}-vm to be named")


CLOCK = datetime(2030, 1, 1, tzinfo=UTC)
#: How far the room on a host is from what some VM needs, in MiB.
NEAR_MB = 200
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


def engine_of(state: Snapshot, *, restarts: bool = True) -> Engine:
    vms = state.vms if restarts else tuple(replace(vm, ha=False) for vm in state.vms)
    engine = Engine.from_snapshot(replace(state, vms=vms), clock=CLOCK, settings=PROMPT)
    engine.advance(3 * A_MINUTE)
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
            engine = engine_of(state, restarts=False)
            engine.hosts.fail(failing)
            engine.advance(A_MINUTE)
            for vm, home in survival.homes.items():
                engine.vms.start(vm, host_id=home)
            engine.advance(A_MINUTE)
            after = engine.snapshot().vm_by_id
            assert {vm: after[vm].host for vm in survival.homes} == dict(survival.homes), seed
            safe += bool(survival.homes)
    assert safe > len(seeds) / 20
