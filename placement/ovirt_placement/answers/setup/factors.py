"""Changes factors of weights: the engine can only take a weight out, without its parameters, and in again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.requests import attach, detach, set_properties
from ovirt_placement.answers.setup.wanted import numbers
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyRequest


def parameters_away(
    units: Mapping[str, PolicyUnit], policy: PolicyContent, factors: Mapping[str, int]
) -> dict[str, str]:
    """Parameters that only weights know whose factors change: the engine refuses those meanwhile."""
    changing = {
        entry.unit for entry in policy.weights if factors.get(entry.unit, entry.number) != entry.number
    }
    staying = {i for i in units if i in policy.units or units[i].name in ours.MANDATORY} - changing
    known = {name for unit in staying for name in units[unit].properties}
    return {n: value for n, value in policy.head.properties.items() if changing and n not in known}


def put_aside(policy: PolicyContent, away: Mapping[str, str]) -> Iterator[PolicyRequest]:
    """Take these parameters off the policy."""
    if away:
        yield set_properties(policy, without(policy, away).head.properties)


def without(policy: PolicyContent, away: Mapping[str, str]) -> PolicyContent:
    """The policy without these parameters."""
    return _with_properties(policy, {n: v for n, v in policy.head.properties.items() if n not in away})


def with_returned(policy: PolicyContent, away: Mapping[str, str]) -> PolicyContent:
    """The policy with the parameters that an interrupted run has put aside."""
    return _with_properties(policy, {**away, **policy.head.properties})


def set_factor(
    units: Mapping[str, PolicyUnit], policy: PolicyContent, unit: str, factor: int, coming: str
) -> Iterator[PolicyRequest]:
    """Attach a weight that is not there, which is `coming`, or change its factor."""
    present = numbers(policy.weights).get(unit)
    if present is None:
        yield attach(policy, "weights", unit, coming, factor=factor)
    elif present != factor:
        what = f"change the factor of {units[unit].name} from {present} to {factor}"
        yield detach(policy, "weights", unit, f"{what}: take it out")
        yield attach(policy, "weights", unit, f"{what}: put it back", factor=factor)


def _with_properties(policy: PolicyContent, properties: dict[str, str]) -> PolicyContent:
    return replace(policy, head=replace(policy.head, properties=properties))
