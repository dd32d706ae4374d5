"""What is foreseen of a change is what then happens: the same violations, migrations and survivors.

A simulated engine that knows nothing of the rules takes the change, the real enforcer repairs what it
violates; then hosts fail, and VMs start where it was said.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.answers.group_changes import judge
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.forecast import Outlook, foresee, with_group, without_group
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.planning.outages import Outage, foresee_outage
from ovirt_placement.planning.plan import NEVER
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.server import serve
from tests.builders import APART, DISABLED, SOFT_APART, SOFT_TOGETHER, TOGETHER, group
from tests.scenarios.stage import START, Stage, Story, configured, daemon_of, simulated_time

#: The event of a migration that has ended well.
MIGRATED = 63
A_MINUTE = 60.0
RULES = (TOGETHER, APART, APART, SOFT_TOGETHER, SOFT_APART)
ENFORCER = {"mode": "enforce", "strategy": "optimal", "memory_headroom_percent": 0, "cpu_headroom_percent": 0}
#: Long enough for all migrations of a case.
UNTIL = 240.0


@dataclass(frozen=True)
class Change:
    """A group to add (which has no id yet), to change, or to remove."""

    group: AffinityGroup
    removes: bool = False

    def made_in(self, before: Snapshot) -> Snapshot:
        if self.removes:
            return without_group(before, self.group.id)
        return with_group(before, replace(self.group, id=self.group.id or self.group.name))

    def make(self, engine: Engine) -> None:
        fields = ("name", "vms_rule", "hosts_rule", "vms", "hosts")
        changes = {name: getattr(self.group, name) for name in fields}
        if self.removes:
            engine.affinity_groups.remove(self.group.id)
        elif self.group.id:
            engine.affinity_groups.edit(self.group.id, **changes)
        else:
            engine.affinity_groups.add(self.group.cluster, **changes)


def drawn(dice: random.Random) -> tuple[Engine, Change]:
    """A cluster in which nothing is violated, neither too full nor too empty, and a change of its rules."""
    while True:
        sizes = Sizes(
            hosts=dice.randint(3, 5), vms=dice.randint(8, 20), groups=dice.randint(0, 4), ha=0.4, broken=0
        )
        state = generate(sizes, dice.randrange(10**6))
        left = dice.choice([0.25, 0.5, 1.0])
        hosts = tuple(replace(one, free_mb=int(one.free_mb * left)) for one in state.hosts)
        engine = Engine.from_snapshot(replace(state, hosts=hosts), clock=START, settings=PROMPT)
        if not flagged(engine):
            return engine, change_of(state, dice)


def change_of(state: Snapshot, dice: random.Random) -> Change:
    plain = [one for one in state.affinity_groups if not (one.vm_labels or one.host_labels)]
    kind = dice.choice(["add", "add", "edit", "remove"])
    if not plain or kind == "add":
        vms = " ".join(one.id for one in dice.sample(state.vms, dice.randint(2, 4)))
        cluster = state.clusters[0].id
        if dice.random() < 0.3:
            listed = " ".join(one.id for one in dice.sample(state.hosts, dice.randint(1, 2)))
            new = group(
                "", DISABLED, vms, hosts_rule=dice.choice(RULES), hosts=listed, cluster=cluster, name="new"
            )
        else:
            new = group("", dice.choice(RULES), vms, cluster=cluster, name="new")
        return Change(new)
    one = dice.choice(plain)
    if kind == "remove":
        return Change(one, removes=True)
    more = dice.choice([vm.id for vm in state.vms if vm.id not in one.vms])
    return Change(replace(one, vms=(*one.vms, more)))


def flagged(engine: Engine) -> set[str]:
    """The names of the groups that the engine itself calls violated."""
    (cluster,) = engine.snapshot().clusters
    return {one.name for one in engine.queries.state.groups_of(cluster.id) if engine.queries.is_broken(one)}


def foreseen_flags(state: Snapshot, found: Outlook) -> set[str]:
    """The groups that are to be violated, taken alone: so the engine judges."""
    placement = SnapshotPlacement(state)
    violated = (*found.rules.violated, *found.rules.as_before)
    return {
        state.group_by_id[one].name for rule in violated for one in rule.constraint.violated_groups(placement)
    }


@dataclass
class World:
    engine: Engine
    stage: Stage
    before: Snapshot


@contextmanager
def enforced(engine: Engine, folder: Path) -> Iterator[World]:
    """The engine behind HTTP, with what is read of it, and a real enforcer once the stage performs."""
    folder.mkdir()
    with closing(serve(engine)) as server:
        config = configured(folder, server.api_url, ENFORCER)
        stage = Stage(Story(until=UNTIL, enforcer=ENFORCER), engine, server, folder)
        world = World(engine, stage, inventory.snapshot(config=config, max_age=0.0, deadline=120.0))
        yield world
        with (
            EngineConnection(config.engine) as connection,
            simulated_time(stage.clock),
            daemon_of(config, connection, stage.clock) as daemon,
        ):
            stage.perform(daemon, connection)


def carry_out(seed: int, folder: Path, seen: Counter[str]) -> None:
    dice = random.Random(seed)
    engine, change = drawn(dice)
    with enforced(engine, folder / str(seed)) as world:
        after = change.made_in(world.before)
        found = foresee(world.before, after, change.group.cluster, frozenset({Repair.HARD}), NEVER)
        judgement = judge(world.before, change.group)
        try:
            change.make(engine)
        except Rejected:
            assert judgement.refusals or judgement.unchecked
            seen["refused"] += 1
            return
        assert change.removes or not (judgement.refusals or judgement.unchecked)
        assert flagged(engine) == foreseen_flags(after, found)
        seen["violated"] += bool(found.rules.violated)
    migrated = [event for event in engine.queries.events() if event.code == MIGRATED]
    assert len(migrated) == found.plan.migrations
    seen["moved"] += bool(migrated)
    foreseen_places = {one.id: one.host for one in after.vms} | {
        vm: step.target for step in found.plan.steps for vm in step.vms
    }
    ended = engine.snapshot()
    assert {one.id: one.host for one in ended.vms} == foreseen_places
    stays = {group for rule in found.plan.remaining for group in rule.groups}
    assert {one.id for one in ended.affinity_groups if one.name in flagged(engine)} <= {
        one.id for one in ended.affinity_groups if {one.id, one.name} & stays
    }
    hosts_fail(ended, found, dice, seen)


def hosts_fail(ended: Snapshot, found: Outlook, dice: random.Random, seen: Counter[str]) -> None:
    """As many as are survived for sure, or one more."""
    up = [one.id for one in ended.hosts if one.up]
    survived = 0 if found.failures_settled is None else found.failures_settled.count
    down = tuple(dice.sample(up, min(len(up) - 1, survived + dice.randint(0, 1)) or 1))
    foreseen = foresee_outage(ended, down, ())
    if len(down) <= survived:
        assert not foreseen.unplaced
        seen["survived"] += 1
    calm = replace(ended, vms=tuple(replace(one, ha=False) for one in ended.vms))
    engine = Engine.from_snapshot(calm, clock=START, settings=PROMPT)
    for host in down:
        engine.hosts.fail(host)
    engine.advance(A_MINUTE)
    start_as_reported(engine, foreseen)
    seen["unplaced"] += bool(foreseen.unplaced)
    end = engine.snapshot().vm_by_id
    lost = {one.id: one.host for one in ended.vms if one.host in down}
    assert {one.id: end[one.id].host for one in foreseen.end.vms} == {
        one.id: one.host for one in foreseen.end.vms
    }
    assert {*foreseen.stopped} == {vm for vm in lost if not ended.vm_by_id[vm].ha}
    difference = foresee(ended, foreseen.end, ended.clusters[0].id, frozenset(), NEVER)
    assert flagged(engine) == foreseen_flags(foreseen.end, difference)


def start_as_reported(engine: Engine, foreseen: Outage) -> None:
    for start in foreseen.starts:
        if start.host is None:
            with pytest.raises(Rejected):
                engine.vms.start(start.vm)
        else:
            engine.vms.start(start.vm, host_id=start.host)
            engine.advance(A_MINUTE)


#: The last of the few is of a plan that HA reservation cuts off.
FEW = (0, 1, 2, 10, 11, 12, 1081)


@pytest.mark.parametrize(
    ("seeds", "least"),
    [
        pytest.param(FEW, 1, marks=pytest.mark.system, id="few"),
        *(pytest.param(range(at, at + 25), 4, marks=pytest.mark.nightly) for at in range(1000, 1100, 25)),
    ],
)
def test_what_is_foreseen_comes_true(seeds: Iterable[int], least: int, tmp_path: Path) -> None:
    seen = Counter[str]()
    for seed in seeds:
        carry_out(seed, tmp_path, seen)
    assert min(seen["violated"], seen["survived"]) >= least
    assert seen["moved"]
