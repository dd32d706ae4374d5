"""What would come of adding, changing or removing affinity groups."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ovirt_placement import config, inventory
from ovirt_placement.cli.foresight import planning
from ovirt_placement.cli.question import PATIENCE_SECONDS
from ovirt_placement.model import AffinityGroup

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument


def foreseen(
    args: argparse.Namespace,
    *,
    gone: Sequence[AffinityGroup] = (),
    meant: Sequence[AffinityGroup] = (),
    conflicts: Sequence[str] = (),
) -> WhatIfDocument:
    """By an engine read now with all that rules need, without some groups, and with others as meant."""
    # Planning takes long to load.
    from ovirt_placement.answers.groups import foreseen as answer

    before = inventory.snapshot(config=config.load(args.config), max_age=0.0, deadline=PATIENCE_SECONDS)
    return answer.foreseen(before, gone, meant, conflicts, **planning(args))
