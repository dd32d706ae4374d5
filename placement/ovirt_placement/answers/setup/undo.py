"""The requests that take our units out of a policy again, and give clusters back what they had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ovirt_placement.answers.setup.desired import check_unspoilt
from ovirt_placement.answers.setup.plan import SetupPlan
from ovirt_placement.answers.setup.previous import (
    NOTHING,
    FormerUnits,
    Overview,
    forgotten,
    origin_of,
    remembered,
    restore_policies,
    with_former,
    with_returned,
)
from ovirt_placement.answers.setup.requests import (
    Goal,
    PlannedRequest,
    Words,
    assign,
    describe,
    lead_to,
    numbers,
    parameters_away,
    remove,
)
from ovirt_placement.answers.setup.units import MANDATORY, attached, unit_id, weight_twins
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import UnitKind

#: The engine's balance that does nothing. A policy without any stops the load balancing of all clusters.
_NO_BALANCE = "None"

_UNKNOWN = (
    "it is not recorded which of the engine's units the policy had before ours: those next to ours stay,"
    " and the balance is None"
)


_WORDS = Words("put the engine's weight {name} x {factor} back", "set the balance {name} again")
_REMEMBERING = "remember in the policy's description the properties that go meanwhile"
_FORGETTING = "forget in the policy's description what was before"


def undo(overview: Overview, policy: PolicyContent, going: frozenset[str] = frozenset()) -> SetupPlan:
    """Plan the requests, in order; none if setup has left no trace in the policy.

    `going` are ids of policies that are removed in the same run. Raises `UserError` for what the engine would
    refuse.
    """
    head = policy.head
    if origin_of(head.description) is not None:
        returned = restore_policies(overview, head, going | {head.id}, all_users=True)
        return SetupPlan((*returned, remove(policy)), ())
    former = remembered(head.description)
    own = attached(overview.units, policy.units)
    if not own and former == NOTHING:
        return SetupPlan((), ())
    check_unspoilt(overview.units, policy)
    goal, unknown = _left(overview.units, with_returned(policy), own, former.units or FormerUnits())
    away = parameters_away(overview.units, policy, goal.weights)
    meanwhile = head.description
    if away:
        meanwhile = with_former(meanwhile, replace(former, away={**former.away, **away}))
    requests = (
        *restore_policies(overview, head, going, all_users=False),
        *describe(policy, meanwhile, _REMEMBERING),
        *lead_to(overview.units, policy, goal),
        *_dropped_parameters(overview, policy, unknown),
        # At last: until then an interrupted run must know what to do.
        *describe(policy, forgotten(head.description), _FORGETTING, meanwhile),
    )
    return SetupPlan(requests, (_UNKNOWN,) if own and former.units is None else ())


def _left(
    units: Mapping[str, PolicyUnit], policy: PolicyContent, own: set[str], former: FormerUnits
) -> tuple[Goal, frozenset[str]]:
    """What is left of a policy without our units, and parameters that only those know which go."""
    came = {
        unit_id(units, kind, name, internal=True)
        for kind, names in (
            (UnitKind.FILTER, former.filters_lacked),
            (UnitKind.WEIGHT, former.weights_lacked),
        )
        for name in names
    }
    weights = dict(_former_weights(units, policy, former))
    balance = _former_balance(units, former) if own & set(numbers(policy.balances)) else None
    gone = tuple(unit for unit in policy.units if unit in own or unit in came)
    staying = {*policy.units, *weights, *([balance] if balance else [])} - set(gone)
    staying |= {i for i, unit in units.items() if unit.name in MANDATORY}
    known = {name for unit in staying if unit in units for name in units[unit].properties}
    every = {**former.properties, **policy.head.properties}
    properties = {name: value for name, value in every.items() if name in known}
    unknown = frozenset(name for unit in gone for name in units[unit].properties if name not in known)
    return Goal({}, weights, balance, properties, gone, _WORDS), unknown


def _former_weights(
    units: Mapping[str, PolicyUnit], policy: PolicyContent, former: FormerUnits
) -> Iterator[tuple[str, int]]:
    """The engine's weights that the policy had, with their factors."""
    present = numbers(policy.weights)
    for twin in weight_twins(units).values():
        name = units[twin].name
        factor = former.factors.get(name, present.get(twin))
        if factor is not None and name not in former.weights_lacked:
            yield twin, factor


def _former_balance(units: Mapping[str, PolicyUnit], former: FormerUnits) -> str | None:
    found = unit_id(units, UnitKind.BALANCE, former.balance or _NO_BALANCE, internal=True)
    return found or unit_id(units, UnitKind.BALANCE, _NO_BALANCE, internal=True)


def _dropped_parameters(
    overview: Overview, policy: PolicyContent, unknown: frozenset[str]
) -> Iterator[PlannedRequest]:
    """The engine drops parameters that no unit knows when a cluster is changed, whatever is changed.

    Clusters that get another policy are changed by that.
    """
    others = remembered(policy.head.description).clusters
    for user in overview.users:
        if user.id in others or user.policy != policy.head.id:
            continue
        if names := sorted(unknown & user.properties.keys()):
            what = f"let the cluster {user.name} drop the parameters {', '.join(names)}"
            yield assign(user, policy.head.id, {}, what)
