"""What would come of changing placement keys."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from ovirt_placement.cli.foresight import planning
from ovirt_placement.cli.keys.state import opened_store, read_engine, read_records
from ovirt_placement.inventory.client.keys import with_keys
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.placement_keys import key_filter
from ovirt_placement.store.keys import KeyChange

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument


def foreseen(
    args: argparse.Namespace, decide: Callable[[Snapshot], tuple[KeyChange, tuple[str, ...]]]
) -> WhatIfDocument:
    """With the keys as they are to be, in every cluster whose policy heeds them.

    `decide` says for a state what is to be changed, and what speaks against it.
    """
    from ovirt_placement.answers.what_if import what_if
    from ovirt_placement.forecast import changes
    from ovirt_placement.forecast.outlook import foresee

    with opened_store(args, create=False) as store:
        records, _ = read_records(store)
    before = with_keys(read_engine(args), records)
    change, conflicts = decide(before)
    after = changes.with_keys(before, change)
    heeding = (one.id for one in before.clusters if key_filter.RULE in filters_in_force(one))
    return what_if(foresee(before, after, heeding, **planning(args)), after, conflicts)
