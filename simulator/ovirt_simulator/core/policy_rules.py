"""What makes a scheduling policy valid, and which properties it may have.

Source: the engine's ClusterPolicyCRUDCommand, ClusterOperationCommandBase and CustomPropertiesUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from . import refusals
from .entities import PolicyUnit, SchedulingPolicy, UnitType
from .state import State


def known_properties(policy: SchedulingPolicy, units: Mapping[str, PolicyUnit]) -> dict[str, str]:
    """Give the regular expression of every property that a unit of the policy knows."""
    attached = [*(f.unit for f in policy.filters), *(w.unit for w in policy.weights)]
    if policy.balance is not None:
        attached.append(policy.balance)
    return {name: regex for unit in attached for name, regex in units[unit].properties.items()}


def check_properties(properties: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Refuse unknown properties, and values that do not match as a whole. Raises `Rejected`."""
    for name, value in properties.items():
        if name not in known or re.fullmatch(known[name], value) is None:
            raise refusals.policy_parameters_invalid()


def check_policy(policy: SchedulingPolicy, state: State) -> None:
    """Refuse a policy that the engine does not save. Raises `Rejected`."""
    if policy.locked:
        raise refusals.policy_parameters_invalid()
    if any(other.name == policy.name and other.id != policy.id for other in state.policies.values()):
        raise refusals.bad_parameters(
            "ACTION_TYPE_FAILED_CLUSTER_POLICY_NAME_INUSE",
            "Cannot save Scheduling Policy. The name is already in use.",
        )
    _check_units([entry.unit for entry in policy.filters], UnitType.FILTER, state)
    _check_units([entry.unit for entry in policy.weights], UnitType.WEIGHT, state)
    _check_units([] if policy.balance is None else [policy.balance], UnitType.LOAD_BALANCING, state)
    positions = [entry.position for entry in policy.filters]
    if positions.count(-1) > 1 or positions.count(1) > 1:
        raise refusals.bad_parameters(
            "ACTION_TYPE_FAILED_CLUSTER_POLICY_ONLY_ONE_FILTER_CAN_BE_FIRST_OR_LAST",
            "Cannot save Scheduling Policy. Only one filter can be first, and only one last.",
        )
    if any(entry.factor < 0 for entry in policy.weights):
        raise refusals.bad_parameters(
            "ACTION_TYPE_FAILED_CLUSTER_POLICY_FUNCTION_FACTOR_NEGATIVE",
            "Cannot save Scheduling Policy. Function factor cannot be negative.",
        )
    check_properties(policy.properties, known_properties(policy, state.units))


def _check_units(unit_ids: Sequence[str], kind: UnitType, state: State) -> None:
    if any(state.units[unit_id].type is not kind for unit_id in unit_ids):
        raise refusals.bad_parameters(
            "ACTION_TYPE_FAILED_CLUSTER_POLICY_UNIT_TYPE_MISMATCH",
            f"Cannot save Scheduling Policy. A unit is not of type {kind}.",
        )
    if len(set(unit_ids)) < len(unit_ids):
        raise refusals.bad_parameters(
            "ACTION_TYPE_FAILED_CLUSTER_POLICY_DUPLICATE_POLICY_UNIT",
            "Cannot save Scheduling Policy. A unit is attached more than once.",
        )
