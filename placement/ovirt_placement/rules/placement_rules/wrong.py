"""All that is wrong with a placement rule in a state, but for what it lacks itself."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.placement_rules.restart_order import why_circular, why_without_effect
from ovirt_placement.rules.placement_rules.satisfiable import why_impossible


def what_is_wrong(snapshot: Snapshot, found: Resolved) -> Iterator[str]:
    """In a sentence each: words that name nothing, numbers that cannot be, orders in a circle."""
    yield from found.problems
    yield from why_impossible(snapshot, found)
    yield from why_circular(snapshot, found.rule.id)
    yield from why_without_effect(snapshot, found)
