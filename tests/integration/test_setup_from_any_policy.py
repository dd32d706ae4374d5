"""Whatever policy `ovirt-placement setup` finds: it completes it, and a second run changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.setup.choice import MADE, Choice, Seen
from ovirt_placement.answers.setup.plan import Plan, plan
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.writing import policies
from ovirt_placement.model import SchedulingPolicy as Units
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import PolicyUnit, UnitType
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import cluster, snapshot

NONE = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"
OURS = Units(
    filters=("AffinityFilter", "HostAffinityFilter"),
    weights={"SoftAffinityWeight": 1, "HostAffinityWeight": 1, "HaReservationWeight": 1},
    balance="HaReservationBalance",
)
STATE = snapshot(cluster("c1", name="blue", scheduling_policy=OURS), cluster("c2", name="red"))
_number = count()


class World:
    """An engine over HTTP, to which policies are added, one an example."""

    def __init__(self, engine: Engine, connection: EngineConnection) -> None:
        self.engine = engine
        self._connection = connection
        self.units = {
            kind: [unit for unit in engine.queries.scheduling_policy_units() if unit.type is kind]
            for kind in UnitType
        }

    def add_policy(
        self,
        made: bool,
        filters: list[tuple[PolicyUnit, int]],
        weights: list[tuple[PolicyUnit, int]],
        balance: PolicyUnit | None,
    ) -> str:
        name = f"policy{next(_number)}"
        policy = self.engine.policies.add(name, description=MADE if made else "")
        present = {entry.unit for entry in policy.filters}
        taken: set[int] = set()
        for unit, position in filters:
            if unit.id not in present:
                free = 0 if position in taken else position
                taken.add(free)
                self.engine.policies.add_filter(policy.id, unit.id, position=free)
        for unit, factor in weights:
            self.engine.policies.add_weight(policy.id, unit.id, factor=factor)
        if balance is not None:
            self.engine.policies.set_balance(policy.id, balance.id)
        return name

    def plan(self, choice: Choice) -> Plan:
        heads = policies.read_heads(self._connection)
        by_name = {head.name: head for head in heads}
        (base,) = (head for head in heads if head.id == NONE)
        seen = Seen(
            units=policies.read_units(self._connection),
            base=policies.read_content(self._connection, base),
            target=policies.read_content(self._connection, by_name[choice.policy]),
            clusters=tuple(user for user in policies.read_users(self._connection) if user.id == "c2"),
        )
        return plan(seen, choice)

    def carry_out(self, plan: Plan) -> None:
        for request in plan.requests:
            policies.send(self._connection, request, None)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    engine = Engine.from_snapshot(STATE, clock=datetime(2026, 3, 1, tzinfo=UTC), settings=PROMPT)
    server = serve(engine)
    account = EngineSettings(url=server.api_url, username="admin@internal")
    try:
        with EngineConnection(account, {"OVIRT_PASSWORD": "password"}) as connection:
            yield World(engine, connection)
    finally:
        server.close()


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_second_run_finds_nothing_to_do(world: World, data: st.DataObject) -> None:
    def some(kind: UnitType, numbers: st.SearchStrategy[int]) -> list[tuple[PolicyUnit, int]]:
        chosen = data.draw(st.lists(st.sampled_from(world.units[kind]), unique_by=lambda unit: unit.id))
        return [(unit, data.draw(numbers)) for unit in chosen]

    name = world.add_policy(
        data.draw(st.booleans()),
        some(UnitType.FILTER, st.sampled_from([-1, 0, 1])),
        some(UnitType.WEIGHT, st.integers(0, 99)),
        data.draw(st.sampled_from([None, *world.units[UnitType.LOAD_BALANCING]])),
    )
    factors = data.draw(st.dictionaries(st.sampled_from(sorted(OURS.weights)), st.integers(0, 9)))
    choice = Choice(name, factors=factors)
    world.carry_out(world.plan(choice))
    assert world.plan(choice).requests == ()
    units = {unit.id: unit.name for unit in world.engine.queries.scheduling_policy_units()}
    (policy,) = (each for each in world.engine.queries.scheduling_policies() if each.name == name)
    weights = {units[entry.unit]: entry.factor for entry in policy.weights if entry.unit in units}
    assert OURS.weights.keys() <= weights.keys()
    assert factors.items() <= weights.items()
    assert {"VmAffinityGroups", *OURS.filters} <= {units[entry.unit] for entry in policy.filters}
    assert policy.balance is not None
    (red,) = (each for each in world.engine.queries.clusters() if each.id == "c2")
    assert red.policy_id == policy.id
