"""What would come of changing placement keys."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from ovirt_placement.answers.keys.change import read_records
from ovirt_placement.cli.foresight import planning
from ovirt_placement.cli.keys.state import opened_store, read_engine
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import Snapshot
from ovirt_placement.store.keys import KeyChange

if TYPE_CHECKING:
    from ovirt_placement.answers.what_if import WhatIfDocument


def foreseen(
    args: argparse.Namespace, decide: Callable[[Snapshot], tuple[KeyChange, tuple[str, ...]]]
) -> WhatIfDocument:
    """By an engine read now, with the keys as they are to be.

    `decide` says for a state what is to be changed, and what speaks against it.
    """
    # Planning takes long to load.
    from ovirt_placement.answers.keys import foreseen as answer

    with opened_store(args, create=False) as store:
        records, _ = read_records(store)
    before = with_keys(read_engine(args), records)
    return answer.foreseen(before, *decide(before), **planning(args))
