"""The requests that take our units out of a policy again, and give clusters back what they had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from ovirt_placement.answers.setup.desired import (
    check_unspoilt,
    numbers,
    parameters_away,
    put_aside,
    set_factor,
    with_returned,
    without,
)
from ovirt_placement.answers.setup.plan import SetupPlan
from ovirt_placement.answers.setup.previous import (
    NOTHING,
    Former,
    FormerUnits,
    Overview,
    forgotten,
    origin_of,
    remembered,
    restore_policies,
    with_former,
)
from ovirt_placement.answers.setup.requests import assign, attach, describe, detach, exchange, policy_path
from ovirt_placement.answers.setup.units import MANDATORY, attached, unit_id, weight_twins
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyRequest
from ovirt_placement.rules.rule import UnitKind

#: The engine's balance that does nothing. A policy without any stops the load balancing of all clusters.
_NO_BALANCE = "None"

_UNKNOWN = (
    "it is not recorded which of the engine's units the policy had before ours: those next to ours stay,"
    " and the balance is None"
)


@dataclass(frozen=True)
class Left:
    """What is left of a policy without our units."""

    #: Ours, and those of the engine's that came with them.
    gone: tuple[str, ...]
    #: Factors of the engine's weights that stay or come back.
    weights: Mapping[str, int]
    #: The balance that comes in place of ours; None if ours is not there.
    balance: str | None
    properties: Mapping[str, str]
    #: Parameters that only those know which go.
    unknown: frozenset[str]


def undo(overview: Overview, policy: PolicyContent, going: frozenset[str] = frozenset()) -> SetupPlan:
    """Plan the requests, in order; none if setup has left no trace in the policy.

    `going` are ids of policies that are removed in the same run. Raises `UserError` for what the engine would
    refuse.
    """
    head = policy.head
    if origin_of(head.description) is not None:
        returned = restore_policies(overview, head, going | {head.id}, all_users=True)
        removal = PolicyRequest(f"remove the policy {head.name}", "DELETE", policy_path(policy))
        return SetupPlan((*returned, removal), ())
    former = remembered(head.description)
    own = attached(overview.units, policy.units)
    if not own and former == NOTHING:
        return SetupPlan((), ())
    check_unspoilt(overview.units, policy)
    whole = with_returned(policy, former.away)
    left = _left(overview.units, whole, own, former.units or FormerUnits())
    away = parameters_away(overview.units, policy, left.weights)
    requests = (
        *restore_policies(overview, head, going, all_users=False),
        *_remembered(policy, former, away),
        *put_aside(policy, away),
        *_weights(overview.units, policy, left),
        # While our units are there that know what is set.
        *exchange(without(policy, away), _balance(overview.units, policy, left), left.properties),
        *_detached(overview.units, policy, left),
        *_dropped_parameters(overview, policy, left),
        *_description(policy),
    )
    return SetupPlan(requests, (_UNKNOWN,) if own and former.units is None else ())


def _left(units: Mapping[str, PolicyUnit], policy: PolicyContent, own: set[str], former: FormerUnits) -> Left:
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
    return Left(
        gone=gone,
        weights=weights,
        balance=balance,
        properties={name: value for name, value in every.items() if name in known},
        unknown=frozenset(name for unit in gone for name in units[unit].properties if name not in known),
    )


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


def _remembered(policy: PolicyContent, former: Former, away: Mapping[str, str]) -> Iterator[PolicyRequest]:
    if away:
        text = with_former(policy.head.description, replace(former, away={**former.away, **away}))
        yield describe(policy, text, "remember in the policy's description the properties that go meanwhile")


def _weights(units: Mapping[str, PolicyUnit], policy: PolicyContent, left: Left) -> Iterator[PolicyRequest]:
    for unit, factor in left.weights.items():
        coming = f"put the engine's weight {units[unit].name} x {factor} back"
        yield from set_factor(units, policy, unit, factor, coming)


def _balance(units: Mapping[str, PolicyUnit], policy: PolicyContent, left: Left) -> PolicyRequest | None:
    if left.balance is None:
        return None
    return attach(policy, "balances", left.balance, f"set the balance {units[left.balance].name} again")


def _detached(units: Mapping[str, PolicyUnit], policy: PolicyContent, left: Left) -> Iterator[PolicyRequest]:
    for collection, entries in (("filters", policy.filters), ("weights", policy.weights)):
        for entry in entries:
            if entry.unit in left.gone:
                what = f"take out the {collection.removesuffix('s')} {units[entry.unit].name}"
                yield detach(policy, collection, entry.unit, what)


def _dropped_parameters(overview: Overview, policy: PolicyContent, left: Left) -> Iterator[PolicyRequest]:
    """The engine drops parameters that no unit knows when a cluster is changed, whatever is changed.

    Clusters that get another policy are changed by that.
    """
    others = remembered(policy.head.description).clusters
    for user in overview.users:
        if user.id in others or user.policy != policy.head.id:
            continue
        if names := sorted(left.unknown & user.properties.keys()):
            what = f"let the cluster {user.name} drop the parameters {', '.join(names)}"
            yield assign(user, policy.head.id, {}, what)


def _description(policy: PolicyContent) -> Iterator[PolicyRequest]:
    """At last: until then an interrupted run must know what to do."""
    without = forgotten(policy.head.description)
    if without != policy.head.description:
        yield describe(policy, without, "forget in the policy's description what was before")
