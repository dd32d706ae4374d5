"""What would come of adding, changing or removing an affinity group."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement import config, inventory
from ovirt_placement.answers.groups.check import GroupJudgement
from ovirt_placement.cli.foresight import planning
from ovirt_placement.cli.question import PATIENCE_SECONDS
from ovirt_placement.model import AffinityGroup, Snapshot

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument


def foreseen(args: argparse.Namespace, group: AffinityGroup, judgement: GroupJudgement) -> WhatIfDocument:
    """With the group as it is to be, by an engine read now with all that rules need."""
    from ovirt_placement.forecast.changes import with_group

    before = _read(args)
    after = with_group(before, replace(group, id=group.id or group.name))
    conflicts = (*judgement.refusals, *judgement.unchecked, *judgement.warnings)
    return _compared(args, before, after, (group.cluster,), conflicts)


def foreseen_without(args: argparse.Namespace, group: AffinityGroup) -> WhatIfDocument:
    from ovirt_placement.forecast.changes import without_group

    before = _read(args)
    return _compared(args, before, without_group(before, group.id), (group.cluster,), ())


def foreseen_all(
    args: argparse.Namespace,
    gone: Sequence[AffinityGroup],
    meant: Sequence[AffinityGroup],
    conflicts: tuple[str, ...],
) -> WhatIfDocument:
    """Without some groups, and with others as they are to be."""
    from ovirt_placement.forecast.changes import with_group, without_group

    before = after = _read(args)
    for group in gone:
        after = without_group(after, group.id)
    for group in meant:
        after = with_group(after, group)
    clusters = tuple(dict.fromkeys(group.cluster for group in (*gone, *meant)))
    return _compared(args, before, after, clusters, conflicts)


def _compared(
    args: argparse.Namespace,
    before: Snapshot,
    after: Snapshot,
    clusters: Sequence[str],
    conflicts: tuple[str, ...],
) -> WhatIfDocument:
    from ovirt_placement.answers.what_if import what_if
    from ovirt_placement.forecast.outlook import foresee

    outlooks = foresee(before, after, clusters, **planning(args))
    # A group that goes is still to be named.
    names = replace(before, affinity_groups=tuple({**before.group_by_id, **after.group_by_id}.values()))
    return what_if(outlooks, names, conflicts)


def _read(args: argparse.Namespace) -> Snapshot:
    return inventory.snapshot(config=config.load(args.config), max_age=0.0, deadline=PATIENCE_SECONDS)
