"""The violations that we find are the groups that the simulated engine flags as violated."""

from __future__ import annotations

from hypothesis import given

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.violations import find_violations
from ovirt_simulator.core.engine import Engine
from tests.builders import CLUSTER
from tests.placement.rules.strategies import snapshots
from tests.simulator.core.engines import START


def comparable(state: Snapshot, one: AffinityGroup) -> bool:
    """Where we differ on purpose: foreign members do not count, and a rule without hosts is none."""
    own = all(state.vm_by_id[vm].cluster == one.cluster for vm in state.group_vms[one.id])
    listing = bool(state.group_hosts[one.id]) or not one.hosts_rule.enabled
    return own and listing


@given(snapshots())
def test_violations_are_the_groups_that_the_engine_flags(state: Snapshot) -> None:
    engine = Engine.from_snapshot(state, clock=START)
    found = {name for violation in find_violations(state, CLUSTER) for name in violation.violated}
    for one in state.affinity_groups:
        if comparable(state, one):
            record = engine.queries.state.groups.get(one.id)
            assert record is not None
            assert (one.id in found) == engine.queries.is_broken(record)
