"""Whatever policy `ovirt-placement setup` finds: it completes it, again changes nothing, and can be undone.

Any run may end after any of its requests; the next one goes on.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.setup import SetupPlan, Target, read_overview
from ovirt_placement.answers.setup.plan import plan
from ovirt_placement.answers.setup.previous import made_like, undo
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine import policies
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import PolicyUnit, UnitType
from ovirt_simulator.http.server import serve
from tests import builders as build
from tests.builders import SOFT_APART, cluster, snapshot
from tests.examples import examples
from tests.placement.cli.live_engine import live_engine
from tests.placement.cli.setup.policies import OUR_FILTERS, OUR_WEIGHTS, TWINS
from tests.plugins.proxy_process import proxy_url
from tests.plugins.published import Publisher

NO_BALANCE = "38440000-8cf0-14bd-c43e-10b96e4ef00a"
OURS = Units(
    filters=tuple(sorted(OUR_FILTERS)), weights=dict.fromkeys(OUR_WEIGHTS, 1), balance="HaReservationBalance"
)
STATE = snapshot(cluster("c1", name="blue", scheduling_policy=OURS), cluster("c2", name="red"))
_number = count()


@dataclass(frozen=True)
class Reported:
    """All of a policy, the order in which its units stand aside."""

    description: str
    filters: Mapping[str, int]
    weights: Mapping[str, int]
    balance: str | None
    properties: Mapping[str, str]


class World:
    """An engine over HTTP, to which policies are added, one an example."""

    def __init__(self, engine: Engine, connection: EngineConnection) -> None:
        self.engine = engine
        self._connection = connection
        every = tuple(engine.queries.state.units.values())
        self.units = {kind: [unit for unit in every if unit.type is kind] for kind in UnitType}
        self.names = {unit.id: unit.name for unit in every}
        self.ours = {unit.id for unit in every if not unit.internal}
        self.built_in = [policy.id for policy in engine.queries.state.policies.values() if policy.locked]

    def add_policy(
        self,
        description: str,
        filters: list[tuple[PolicyUnit, int]],
        weights: list[tuple[PolicyUnit, int]],
        balance: PolicyUnit | None,
        properties: Mapping[str, str],
    ) -> str:
        name = f"policy{next(_number)}"
        policy = self.engine.policies.add(name, description=description)
        present = {entry.unit for entry in policy.filters}
        taken: set[int] = set()
        for unit, position in filters:
            if unit.id not in present:
                free = 0 if position in taken else position
                taken.add(free)
                self.engine.policies.attach("filters", policy.id, unit.id, position=free)
        for unit, factor in weights:
            self.engine.policies.attach("weights", policy.id, unit.id, factor=factor)
        if balance is not None:
            self.engine.policies.attach("balances", policy.id, balance.id)
        self.engine.policies.edit(policy.id, properties=dict(properties))
        return name

    def reported(self, name: str) -> Reported | None:
        """What the engine holds of a policy; None if it has no such policy."""
        for policy in self.engine.queries.state.policies.values():
            if policy.name == name:
                return Reported(
                    policy.description,
                    {entry.unit: entry.position for entry in policy.filters},
                    {entry.unit: entry.factor for entry in policy.weights},
                    policy.balance,
                    policy.properties,
                )
        return None

    def used_by_red(self) -> str:
        red = self.engine.queries.state.clusters["c2"]
        return red.policy_id

    def plan(self, target: Target) -> SetupPlan:
        return plan(self._connection, read_overview(self._connection), target)

    def plan_undo(self, name: str) -> SetupPlan:
        overview = read_overview(self._connection)
        head = overview.named(name)
        if head is None:
            return SetupPlan((), ())
        return undo(overview, policies.read_content(self._connection, head))

    def carry_out(self, look: Callable[[], SetupPlan], ends: list[int]) -> None:
        """Run it over and over, each time but the last only so far."""
        for end in (*ends, None):
            for request in look().requests[:end]:
                policies.send(self._connection, request, None)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    engine = Engine.from_snapshot(STATE, clock=datetime(2026, 3, 1, tzinfo=UTC), settings=PROMPT)
    with closing(serve(engine)) as server:
        account = EngineSettings(url=server.api_url, username="admin@internal")
        with EngineConnection(account, {"OVIRT_PASSWORD": "password"}) as connection:
            connection.get("/clusters")  # begins the thread that asks
            yield World(engine, connection)


#: How many requests the runs before the last get through.
ENDS = st.lists(st.integers(0, 12), max_size=3)


def some_policy(world: World, data: st.DataObject, description: str, *, with_ours: bool) -> str:
    def usable(kind: UnitType) -> list[PolicyUnit]:
        return [unit for unit in world.units[kind] if with_ours or unit.internal]

    def some(kind: UnitType, numbers: st.SearchStrategy[int]) -> list[tuple[PolicyUnit, int]]:
        chosen = data.draw(st.lists(st.sampled_from(usable(kind)), unique_by=lambda unit: unit.id))
        return [(unit, data.draw(numbers)) for unit in chosen]

    weights = some(UnitType.WEIGHT, st.integers(0, 99))
    balance = data.draw(st.sampled_from([None, *usable(UnitType.LOAD_BALANCING)]))
    known = {name for unit in (balance, *(unit for unit, _ in weights)) if unit for name in unit.properties}
    values = {"HighUtilization": "70", "CpuOverCommitDurationMinutes": "3", "ScaleDown": "4"}
    return world.add_policy(
        description,
        some(UnitType.FILTER, st.sampled_from([-1, 0, 1])),
        weights,
        balance,
        {name: value for name, value in values.items() if name in known and data.draw(st.booleans())},
    )


def some_factors(data: st.DataObject) -> dict[str, int]:
    names = sorted({*TWINS, *TWINS.values()})
    return data.draw(st.dictionaries(st.sampled_from(names), st.integers(0, 9)))


@pytest.mark.nightly
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_second_run_finds_nothing_to_do(world: World, data: st.DataObject) -> None:
    description = data.draw(st.sampled_from(["", made_like("none"), made_like("evenly_distributed")]))
    name = some_policy(world, data, description, with_ours=True)
    factors = some_factors(data)
    choice = Target(name, ["c2"], factors=factors)
    world.carry_out(lambda: world.plan(choice), data.draw(ENDS))
    assert world.plan(choice).requests == ()
    policy = world.reported(name)
    weights = {world.names[unit]: factor for unit, factor in policy.weights.items()}
    assert {*TWINS, *TWINS.values()} <= weights.keys()
    assert factors.items() <= weights.items()
    assert all(
        weights[TWINS[own]] == factors.get(TWINS[own], factors[own]) for own in TWINS if own in factors
    )
    assert {"VmAffinityGroups", *OURS.filters} <= {world.names[unit] for unit in policy.filters}
    assert policy.balance is not None
    used = world.engine.queries.state.policies.get(world.used_by_red())
    assert used.name == name


@pytest.mark.system
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_setup_and_then_undo_give_back_what_was(world: World, data: st.DataObject) -> None:
    description = data.draw(st.sampled_from(["", "of the site", "ends in [] "]))
    name = some_policy(world, data, description, with_ours=False)
    before = world.reported(name)
    assert before is not None
    former = data.draw(st.sampled_from(world.built_in))
    world.engine.policies.update_cluster("c2", policy_id=former)
    for _ in range(data.draw(st.integers(1, 2))):
        choice = Target(name, ["c2"], factors=some_factors(data))
        world.carry_out(lambda choice=choice: world.plan(choice), data.draw(ENDS))
    world.carry_out(lambda: world.plan_undo(name), data.draw(ENDS))
    assert world.reported(name) == Reported(
        before.description.strip(),
        before.filters,
        before.weights,
        # Without a balance, the engine balances no cluster at all: that is not given back.
        before.balance or NO_BALANCE,
        before.properties,
    )
    assert (world.used_by_red(), world.plan_undo(name).requests) == (former, ())


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_undo_takes_our_units_out_of_any_policy(world: World, data: st.DataObject) -> None:
    """Also where nobody remembers what was before: they were put in by hand, or it was made long ago."""
    description = data.draw(st.sampled_from(["", "of the site", made_like("none")]))
    name = some_policy(world, data, description, with_ours=True)
    world.engine.policies.update_cluster("c2", policy_name=name)
    before = world.reported(name)
    world.carry_out(lambda: world.plan_undo(name), data.draw(ENDS))
    assert world.plan_undo(name).requests == ()
    after = world.reported(name)
    if description == made_like("none"):
        assert after is None
        assert world.used_by_red() == world.built_in[0]
        return
    assert world.ours.isdisjoint({*after.filters, *after.weights, after.balance})
    assert before.filters.keys() - world.ours == after.filters.keys()
    assert before.weights.keys() - world.ours <= after.weights.keys()


#: All else speaks for the host that the first VM is on: the other one is busy.
BUSY = build.snapshot(
    build.cluster("c1", name="blue"), build.host("idle", cluster="c1", cpu_percent=1, free_mb=60000),
    build.host("busy", cluster="c1", cpu_percent=90, free_mb=2000), build.vm("v1", "idle", cluster="c1"),
    build.vm("v2", cluster="c1"), build.group("g", SOFT_APART, "v1 v2", cluster="c1", name="apart"),
)  # fmt: skip


@pytest.mark.parametrize(("factor", "chosen"), [(0, "idle"), (1000, "busy")])
def test_a_weight_that_setup_adds_decides_as_much_as_its_factor_says(
    factor: int,
    chosen: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    publisher = Publisher(folder)
    with (
        proxy_url(publisher.environment) as proxy,
        live_engine(BUSY, tmp_path, capsys, monkeypatch, proxy=proxy) as live,
    ):
        live.run(0, "setup", "--cluster", "blue", "--factor", f"SoftAffinityWeight={factor}")
        publisher.publish(live.engine.snapshot())
        live.engine.vms.start("v2")
        live.engine.advance(30)
        assert live.engine.queries.state.vms.get("v2").host == chosen
