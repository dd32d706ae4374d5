"""What would come of setting policies up: with our units in force in their clusters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ovirt_placement import config, inventory
from ovirt_placement.cli.foresight import planning
from ovirt_placement.cli.question import PATIENCE_SECONDS
from ovirt_placement.cli.setup.default_keys import planned_keys
from ovirt_placement.cli.setup.tasks import SetupTask
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError
from ovirt_placement.engine.reading.policies import Policy
from ovirt_placement.model import PlacementKey
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument


def foreseen(args: argparse.Namespace, tasks: Sequence[SetupTask]) -> WhatIfDocument:
    """What speaks against single policies is reported, and what their plans note."""
    from ovirt_placement.answers.what_if import what_if
    from ovirt_placement.forecast.changes import with_keys, with_policies
    from ovirt_placement.forecast.outlook import foresee
    from ovirt_placement.store.keys import KeyChange

    policies: dict[str, Policy] = {}
    keys: list[PlacementKey] = []
    conflicts: list[str] = []
    for task in tasks:
        try:
            plan = task.plan()
        except (EngineAway, EngineSetupError):
            raise
        except UserError as error:
            conflicts.append(f"policy {task.policy}: {error}")
            continue
        conflicts += (f"policy {task.policy}: {note}" for note in plan.notes)
        if plan.policy is not None:
            policies |= dict.fromkeys(plan.clusters, plan.policy)
            keys += (one.key for one in planned_keys(args, task.policy, task.users, plan).change.give)
    before = inventory.snapshot(config=config.load(args.config), max_age=0.0, deadline=PATIENCE_SECONDS)
    after = with_keys(with_policies(before, policies), KeyChange(put=tuple(keys)))
    return what_if(foresee(before, after, policies, **planning(args)), after, conflicts)
