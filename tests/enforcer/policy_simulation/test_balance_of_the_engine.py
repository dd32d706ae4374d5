"""Which of its own balances the engine uses is read by its name: its parameters need not give it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.policy_simulation.balancing import balance_of
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.engine.reading.topology import read_snapshot
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, host, snapshot, vm
from tests.placement.cli.setup.policies import unit_id
from tests.scenarios.stage import START, configured


@pytest.mark.parametrize(
    ("unit", "known"), [("OptimalForEvenDistribution", "OptimalForEvenDistribution"), ("None", None)]
)
def test_it_takes_part_under_its_name(unit: str, known: str | None, tmp_path: Path) -> None:
    engine = Engine.from_snapshot(snapshot(host("h1"), vm("a", "h1")), clock=START)
    policy = engine.policies.add("theirs")
    engine.policies.set_balance(policy.id, unit_id(engine, unit))
    engine.policies.update_cluster(CLUSTER, policy_name="theirs")
    server = serve(engine)
    with connect(configured(tmp_path, server.api_url, {}).engine) as connection:
        (found,) = read_snapshot(connection).clusters
    server.close()
    assert "HighUtilization" not in found.scheduling_properties
    balance = balance_of(found)
    assert (None if balance is None else balance.unit) == known
