"""Plans of which more was claimed than is so: of each state a repair is known, by where VMs end."""

from __future__ import annotations

import pytest

from ovirt_placement.model.files import state_file
from ovirt_placement.planning.planner import make_plan
from tests.cases.asking import STATES

#: All that is violated is repaired by these moves, some VMs at once.
REPAIRED_BY = {
    "group-and-any-capacity": {"vm-1": "node-C", "vm-2": "node-C"},
    "group-and-its-capacity": {"v1": "h1", "v2": "h1"},
    "group-and-one-domain": {"v1": "h0", "v2": "h0"},
    "group-out-of-a-domain": {"v0": "h2", "v1": "h2"},
    "group-and-full-capacity": {"v1": "h0", "v2": "h0"},
    "apart-in-the-end": {"v5": "h0", "v0": "h2"},
    "one-domain-in-the-end": {"a": "h1", "b": "h1"},
}


@pytest.mark.parametrize("name", sorted(REPAIRED_BY))
def test_what_can_be_repaired_is_not_proven_to_be_beyond_repair(name: str) -> None:
    state = state_file.load(STATES / "plans" / f"{name}.json")
    plan = make_plan(state, state.clusters[0].id)
    where = {vm: step.target for step in plan.steps for vm in step.vms}
    assert where == REPAIRED_BY[name] or not (plan.proven and plan.remaining)


def test_a_rule_that_cannot_be_satisfied_keeps_no_group_where_it_must_not_be() -> None:
    state = state_file.load(STATES / "plans" / "group-in-two-domains.json")
    plan = make_plan(state, state.clusters[0].id)
    assert [(step.vms, step.target) for step in plan.steps] == [(("v0", "v2"), "h0")]
    assert (plan.refused, [one.groups for one in plan.remaining]) == ((), [("rule:r1",)])
