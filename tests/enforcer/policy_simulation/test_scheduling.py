"""The host that the engine would choose by a policy with our weights next to the engine's own."""

from __future__ import annotations

import pytest

from ovirt_enforcer.policy_simulation.scheduling import Scheduler
from ovirt_placement.model import SchedulingPolicy
from tests.builders import SOFT_TOGETHER, cluster, group, host, snapshot, vm


@pytest.mark.parametrize(
    ("ours", "engines"),
    [
        ("SoftAffinityWeight", "vm_affinity_weight"),
        ("HostAffinityWeight", "vm_to_host_weight"),
        ("HaReservationWeight", "ha_weight"),
    ],
)
@pytest.mark.parametrize(
    ("factors", "chosen"), [((2, 0), "roomy"), ((0, 2), "roomy"), ((2, 2), "near"), ((4, 0), "near")]
)
def test_both_count_against_the_other_weights(
    ours: str, engines: str, factors: tuple[int, int], chosen: str
) -> None:
    """Memory speaks for one host, with the factor 3, and each of the rules for the other."""
    state = snapshot(
        cluster(
            ha_reservation=True,
            scheduling_policy=SchedulingPolicy(weights={ours: factors[0]}),
            policy={engines: factors[1], "even_memory_weight": 3},
        ),
        host("near", free_mb=8000),
        host("roomy", free_mb=60000),
        vm("new", "roomy", ha=True),
        vm("friend", "near"),
        vm("crowd", "roomy", ha=True),
        group("g", SOFT_TOGETHER, "new friend", hosts_rule=SOFT_TOGETHER, hosts="near"),
    )
    assert Scheduler().best_host(state, state.vm_by_id["new"], ("near", "roomy")) == chosen
