"""What changes the engine is sent once, whatever becomes of the answer."""

from __future__ import annotations

import pytest

from ovirt_placement.engine.connection.client import EngineAway
from ovirt_placement.engine.writing.affinity_groups import save_group
from ovirt_simulator.http.control import Disturbance
from tests.builders import cluster, group, snapshot
from tests.placement.engine.simulated import simulated


def test_a_change_whose_answer_is_lost_is_not_sent_again_behind_our_back() -> None:
    """Over a connection that served requests before, curl itself would send it a second time."""
    with simulated(snapshot(cluster("c"))) as (engine, server, connection):
        connection.get("/clusters")
        server.disturbances.add(Disturbance(method="POST", path="/affinitygroups", drop="answer", times=2))
        with pytest.raises(EngineAway) as away:
            save_group(connection, None, group("g", cluster="c"))
        assert away.value.request_sent
        assert len(server.disturbances.waiting) == 1  # the second was not used up
        assert server.disturbances.waiting[0].times == 1
        assert [found.name for found in engine.queries.state.groups_of("c")] == ["g"]
        connection.get("/clusters")
