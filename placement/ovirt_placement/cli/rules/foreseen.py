"""What would come of changing placement rules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.cli.foresight import planning
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.store.placement_rules import RuleChange

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument


def foreseen(
    args: argparse.Namespace, before: Snapshot, change: RuleChange, speaks_against: tuple[str, ...]
) -> WhatIfDocument:
    """With the rules as they are to be, in the clusters of those that come, change or go."""
    from ovirt_placement.answers.what_if import what_if
    from ovirt_placement.forecast import changes
    from ovirt_placement.forecast.outlook import foresee

    after = changes.with_rules(before, change)
    clusters = dict.fromkeys((*_clusters(before, change), *_clusters(after, change)))
    # A rule that goes is still to be named.
    names = replace(after, placement_rules=tuple({**before.rule_by_id, **after.rule_by_id}.values()))
    return what_if(foresee(before, after, clusters, **planning(args)), names, speaks_against)


def _clusters(snapshot: Snapshot, change: RuleChange) -> list[str]:
    names = {*change.remove, *(rule.name for rule in change.put)}
    return [
        found.cluster
        for found in resolved_rules(snapshot)
        if found.rule.name in names and found.cluster is not None
    ]
