"""The external units of a policy as they will be: what decisions in its clusters go by then."""

from __future__ import annotations

from ovirt_placement.answers.setup.choice import Seen
from ovirt_placement.answers.setup.wanted import WantedUnits, numbers
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.model import SchedulingPolicy


def resulting_policy(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> SchedulingPolicy:
    """What is there and what comes in, but for what the engine has itself or has disabled."""
    outside = {
        unit_id: unit.name for unit_id, unit in seen.units.items() if unit.enabled and not unit.internal
    }
    filters = dict.fromkeys((*numbers(policy.filters), *wanted.filters))
    weights = {**numbers(policy.weights), **wanted.weights}
    return SchedulingPolicy(
        filters=tuple(outside[unit] for unit in filters if unit in outside),
        weights={outside[unit]: factor for unit, factor in weights.items() if unit in outside},
        balance=outside.get(wanted.balance),
    )
