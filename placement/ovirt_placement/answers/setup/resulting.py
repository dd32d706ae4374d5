"""A policy as it will be: what decisions in its clusters go by then."""

from __future__ import annotations

from ovirt_placement.answers.setup.choice import Seen
from ovirt_placement.answers.setup.wanted import WantedUnits, numbers
from ovirt_placement.engine.reading.policies import Policy, policy_of
from ovirt_placement.engine.writing.policies import PolicyContent


def resulting_policy(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Policy:
    """What is there and what comes in, as it will be read from the engine."""
    filters = (*numbers(policy.filters), *wanted.filters)
    weights = {**numbers(policy.weights), **wanted.weights}
    return policy_of(
        seen.units,
        dict.fromkeys(unit for unit in filters if unit not in wanted.replaced),
        {unit: factor for unit, factor in weights.items() if unit not in wanted.replaced},
        wanted.balance,
    )
