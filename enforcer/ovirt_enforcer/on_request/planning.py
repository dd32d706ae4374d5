"""A plan of one cluster as of now, for a person who asks for it; nothing is carried out."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_enforcer.actions.migrate_vm.held_back import with_held_back
from ovirt_enforcer.on_request.question import Asked
from ovirt_placement.planning.assignment.choice import Strategy
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan


def planned(
    found: Asked,
    cluster: str,
    strategy: Strategy,
    deadline: Deadline,
    staying: Mapping[str, str] | None = None,
) -> Plan:
    """The plan; VMs in `staying` stay where they are besides those that are held anyway, with the reasons."""
    frozen = {**found.frozen, **(staying or {})}
    plan = make_plan(
        found.snapshot,
        cluster,
        frozen,
        refused=found.left_out.keys(),
        options=found.options,
        strategy=strategy,
        deadline=deadline,
    )
    return with_held_back(plan, found.snapshot, found.spared, found.left_out, frozen)
