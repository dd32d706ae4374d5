"""Rolling maintenance of a hundred hosts with two thousand VMs: near the bounds, by the first draining."""

from __future__ import annotations

import pytest

from ovirt_placement.planning.maintenance.draining import Draining
from ovirt_placement.planning.maintenance.exact import migrations_at_least, rounds_at_least
from ovirt_placement.planning.maintenance.planner import verified
from ovirt_placement.planning.maintenance.site import MaintenanceOptions, Site
from ovirt_placement.planning.reservation import Reserve
from ovirt_simulator.generate import Sizes, generate

#: What a plan may have beyond its bounds.
MORE = 1.1


@pytest.mark.nightly
@pytest.mark.parametrize("at_once", [1, 5])
def test_a_hundred_hosts_are_near_the_bounds(at_once: int) -> None:
    state = generate(Sizes(hosts=100, vms=2000, groups=200, broken=0.0), seed=1)
    (cluster,) = state.clusters
    asked = tuple(host.id for host in state.hosts)
    site = Site(
        state,
        cluster.id,
        asked,
        MaintenanceOptions(at_once=at_once),
        frozenset(),
        Reserve(state, cluster.id, ()),
    )
    rounds = rounds_at_least(site)
    outcome = Draining(site, asked, (), rounds).run()
    assert outcome.blocked == ()
    assert len(outcome.waves) <= MORE * rounds
    assert outcome.migrations <= MORE * migrations_at_least(site, rounds)
    found = verified(site, outcome.waves)
    assert not found.refused
    assert len(found.rounds) == len(outcome.waves)
