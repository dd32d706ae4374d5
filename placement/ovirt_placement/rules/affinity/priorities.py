"""How groups that would be violated on a host are reported and compared: by their priorities."""

from __future__ import annotations

from math import floor

from ovirt_placement.rules.verdict import ReasonKind

GROUP_VIOLATED_HERE = ReasonKind("group_violated_here", "violates {group} of priority {number:g}")
#: A negative group, with the first of its members there.
GROUP_VIOLATED_BY_VM = ReasonKind(
    "group_violated_here", "violates {group} of priority {number:g}: VM {vm} is here"
)

#: The engine keeps priorities with seven decimals.
_STEPS_PER_UNIT = 10**7
_HALF = 0.5


def fixed_point(priority: float) -> int:
    """A group's priority as the engine compares it: a whole number, halves rounded up.

    Source: AffinityGroup.setPriorityFromDouble.
    """
    steps = priority * _STEPS_PER_UNIT
    return floor(steps) + (steps - floor(steps) >= _HALF)
