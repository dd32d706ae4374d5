"""The engine's HA weight and its parameter ScaleDown: differences that become small become ties."""

from __future__ import annotations

import pytest

from ovirt_simulator.scheduler.weights import ha_reservation
from tests.builders import cluster, host, snapshot, vm


@pytest.mark.parametrize(
    ("properties", "points"),
    [({}, (100, 33, 0)), ({"ScaleDown": "40"}, (3, 1, 0)), ({"ScaleDown": "100"}, (1, 1, 0))],
)
def test_points_are_divided_and_rounded_up(properties: dict[str, str], points: tuple[int, int, int]) -> None:
    state = snapshot(
        cluster(ha_reservation=True, scheduling_properties=properties),
        *(host(name) for name in ("full", "less", "empty")),
        *(vm(f"v{number}", "full", ha=True) for number in range(3)),
        vm("v3", "less", ha=True),
        vm("new", ha=True),
    )
    found = ha_reservation(state, [state.vm_by_id["new"]], state.hosts)
    assert tuple(found[name] for name in ("full", "less", "empty")) == points
