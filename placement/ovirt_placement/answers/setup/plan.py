"""The requests that lead from what a policy holds to what it is to hold; none if it holds that already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ovirt_placement.answers.setup.desired import (
    ClusterProperties,
    DesiredUnits,
    check_unlocked,
    check_unspoilt,
    cluster_properties,
    desired_properties,
    desired_units,
    is_own,
    known_properties,
)
from ovirt_placement.answers.setup.previous import (
    Former,
    FormerCluster,
    FormerUnits,
    Seen,
    UnitChoice,
    policy_at_first,
    remembered,
    with_all_back,
    with_former,
    with_returned,
)
from ovirt_placement.answers.setup.requests import (
    Goal,
    PlannedRequest,
    Words,
    assign,
    create,
    describe,
    lead_to,
    numbers,
    parameters_away,
)
from ovirt_placement.answers.setup.units import BALANCE, attached, twins, unit_id, weight_twins
from ovirt_placement.engine.reading.policies import Policy, policy_of
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import UnitKind


def description_to_be(
    seen: Seen,
    policy: PolicyContent,
    wanted: DesiredUnits,
    properties: Mapping[str, str],
    clusters: Sequence[ClusterProperties],
    away: Mapping[str, str],
) -> str:
    """The policy's description, with what was before. What it remembers stands, whatever is interrupted."""
    before = remembered(policy.head.description)
    units = before.units
    if units is None and not is_own(policy):
        units = _units(seen, policy, wanted, properties)
    if units is not None:
        factors = {**_factors(seen, policy, wanted, units), **units.factors}
        units = replace(units, factors=factors)
    found = Former(units, _clusters(seen, policy, before, clusters), {**before.away, **away})
    return with_former(policy.head.description, found)


def _units(
    seen: Seen, policy: PolicyContent, wanted: DesiredUnits, properties: Mapping[str, str]
) -> FormerUnits | None:
    """None if it has units of ours, and nothing of it goes: which of the engine's it had is not known."""
    fresh = not attached(seen.units, policy.units)
    balances = [entry.unit for entry in policy.balances if entry.unit != wanted.balance]
    found = FormerUnits(
        filters_lacked=_lacked(seen, policy, UnitKind.FILTER) if fresh else (),
        weights_lacked=_lacked(seen, policy, UnitKind.WEIGHT) if fresh else (),
        balance=seen.name(balances[0]) if balances else None,
        properties={n: value for n, value in policy.head.properties.items() if n not in properties},
    )
    return found if fresh or found != FormerUnits() else None


def _lacked(seen: Seen, policy: PolicyContent, kind: UnitKind) -> tuple[str, ...]:
    return tuple(
        name
        for name in twins(kind).values()
        if unit_id(seen.units, kind, name, internal=True) not in policy.units
    )


def _factors(seen: Seen, policy: PolicyContent, wanted: DesiredUnits, former: FormerUnits) -> dict[str, int]:
    """The factors of the engine's weights that change."""
    present = numbers(policy.weights)
    before = {
        twin: present.get(twin, wanted.weights[twin])
        for twin in weight_twins(seen.units).values()
        if seen.name(twin) not in former.weights_lacked
    }
    return {seen.name(unit): factor for unit, factor in before.items() if factor != wanted.weights[unit]}


def _clusters(
    seen: Seen, policy: PolicyContent, before: Former, clusters: Sequence[ClusterProperties]
) -> dict[str, FormerCluster]:
    found = dict(before.clusters)
    for each in clusters:
        cluster = each.cluster
        if cluster.policy == policy.head.id:
            continue
        if is_own(policy) and cluster.policy == seen.base.head.id and not each.lost:
            found.pop(cluster.id, None)
        else:
            found[cluster.id] = FormerCluster(cluster.policy, dict(each.lost))
    return found


def resulting_policy(seen: Seen, policy: PolicyContent, wanted: DesiredUnits) -> Policy:
    """What is there and what comes in, as it will be read from the engine."""
    filters = (*numbers(policy.filters), *wanted.filters)
    weights = {**numbers(policy.weights), **wanted.weights}
    return policy_of(
        seen.units,
        dict.fromkeys(unit for unit in filters if unit not in wanted.replaced),
        {unit: factor for unit, factor in weights.items() if unit not in wanted.replaced},
        wanted.balance,
    )


@dataclass(frozen=True)
class SetupPlan:
    requests: tuple[PlannedRequest, ...]
    #: What the administrator should know besides them.
    notes: tuple[str, ...]
    #: What clusters have afterwards, and the clusters; None where units only go.
    policy: Policy | None = None
    clusters: tuple[str, ...] = ()


_WORDS = Words("add the weight {name} x {factor}", "set the balance {name}")


def plan(seen: Seen, choice: UnitChoice) -> SetupPlan:
    """Plan the requests, in order. Raises `UserError` for what the engine lacks or would refuse."""
    policy = policy_at_first(seen, choice)
    check_unlocked(policy)
    check_unspoilt(seen.units, policy)
    wanted = desired_units(seen, policy, choice)
    known = known_properties(seen, policy, wanted)
    away = parameters_away(seen.units, policy, wanted.weights)
    whole = with_returned(policy)
    properties = desired_properties(seen, whole, choice, known)
    clusters = [cluster_properties(cluster, properties, choice, known) for cluster in seen.clusters]
    description = description_to_be(seen, whole, wanted, properties, clusters, away)
    goal = Goal(wanted.filters, wanted.weights, wanted.balance, properties, wanted.replaced, _WORDS)
    # What was before is remembered before anything else.
    first = (
        [create(policy.head.name, description)]
        if seen.target is None
        else describe(policy, description, "remember in the policy's description what was before")
    )
    back = "forget in the policy's description the properties that are back"
    requests = (
        *first,
        *lead_to(seen.units, policy, goal),
        *describe(policy, with_all_back(description), back, description),
        *_assignments(policy, choice, clusters),
    )
    notes = (*_kept_balance(seen, wanted), *_lost_properties(clusters))
    users = tuple(each.cluster.id for each in clusters)
    return SetupPlan(requests, notes, resulting_policy(seen, policy, wanted), users)


def _assignments(
    policy: PolicyContent, choice: UnitChoice, clusters: list[ClusterProperties]
) -> Iterator[PlannedRequest]:
    for each in clusters:
        cluster = each.cluster
        if cluster.policy != policy.head.id or each.kept != cluster.properties:
            what = f"let the cluster {cluster.name} use the policy"
            yield assign(cluster, policy.head.id, choice.properties, what)


def _kept_balance(seen: Seen, wanted: DesiredUnits) -> Iterator[str]:
    name = BALANCE.name
    if wanted.balance != unit_id(seen.units, UnitKind.BALANCE, name):
        yield f"the policy keeps its balance {seen.name(wanted.balance)}; {name} would have to take its place"


def _lost_properties(clusters: list[ClusterProperties]) -> Iterator[str]:
    for each in clusters:
        for name, value in each.lost.items():
            lost = f"its property {name}={value}"
            yield f"cluster {each.cluster.name} loses {lost}: no unit of the policy knows it"
