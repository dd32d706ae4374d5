"""Thirty clusters under rolling maintenance: what happens, by a checker of its own, and bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.planning.maintenance.site import MaintenancePlan
from tests.placement.planning.maintenance.stories import STORIES, Checker, Story, story

#: How many of them need as few rounds as the bound says, at least.
AT_BOUND = 25
#: What others may have of migrations beyond the bound.
MORE_MIGRATIONS = 1.05


def planned(reported: Story) -> MaintenancePlan:
    return plan_maintenance(reported.state, reported.asked, replace(reported.options, explained=False))


@pytest.fixture(scope="module")
def plans() -> list[tuple[Story, MaintenancePlan]]:
    stories = [story(number) for number in range(len(STORIES))]
    return [(reported, planned(reported)) for reported in stories]


@pytest.mark.nightly
def test_no_rule_is_violated_in_any_state(plans: list[tuple[Story, MaintenancePlan]]) -> None:
    for reported, plan in plans:
        Checker(reported).follow(plan)


@pytest.mark.nightly
def test_rounds_and_migrations_are_near_their_bounds(plans: list[tuple[Story, MaintenancePlan]]) -> None:
    assert all(len(plan.hosts) == len(reported.asked) for reported, plan in plans)
    assert sum(len(plan.rounds) == plan.rounds_at_least for _, plan in plans) >= AT_BOUND
    for reported, plan in plans:
        assert plan.migrations <= MORE_MIGRATIONS * plan.migrations_at_least, reported.name
