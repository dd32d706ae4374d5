"""In which order the engine lets groups become what they are to be: it checks each among all others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ovirt_placement.answers.groups.check import judge
from ovirt_placement.forecast.changes import with_group, without_group
from ovirt_placement.model import AffinityGroup, Snapshot


class GroupOrder(NamedTuple):
    """Groups in an order that the engine accepts, and what it would not accept in any."""

    groups: tuple[AffinityGroup, ...]
    #: Each with the group's name.
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


def in_order(
    snapshot: Snapshot, removed: Iterable[AffinityGroup], meant: Sequence[AffinityGroup]
) -> GroupOrder:
    """Order groups, new ones and changed ones, after others are removed.

    One that the engine would refuse now waits for others that are in its way to change; a new one has its
    name for an id until the engine gives it one.
    """
    state = snapshot
    for group in removed:
        state = without_group(state, group.id)
    left, order = list(meant), []
    while left:
        found = [(group, judge(state, group)) for group in left]
        accepted = next((one for one, verdict in found if not (verdict.refusals or verdict.unchecked)), None)
        if accepted is None:
            refusals = (
                f"{one.name}: {text}"
                for one, verdict in found
                for text in (*verdict.refusals, *verdict.unchecked)
            )
            return GroupOrder((), tuple(refusals), ())
        state = with_group(state, accepted)
        order.append(accepted)
        left.remove(accepted)
    warnings = (f"{one.name}: {text}" for one in order for text in judge(state, one).warnings)
    return GroupOrder(tuple(order), (), tuple(warnings))
