"""The requests that lead from what a policy holds to what it is to hold; none if it holds that already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup import bodies
from ovirt_placement.answers.setup.choice import Seen, UnitChoice, policy_at_first
from ovirt_placement.answers.setup.factors import (
    parameters_away,
    put_aside,
    set_factor,
    with_returned,
    without,
)
from ovirt_placement.answers.setup.former import remembered, with_all_back
from ovirt_placement.answers.setup.properties import (
    ClusterProperties,
    cluster_properties,
    known_properties,
    wanted_properties,
)
from ovirt_placement.answers.setup.refusals import check_unlocked, check_unspoilt
from ovirt_placement.answers.setup.remembering import description_to_be
from ovirt_placement.answers.setup.requests import assign, attach, describe, detach, exchange
from ovirt_placement.answers.setup.resulting import resulting_policy
from ovirt_placement.answers.setup.wanted import WantedUnits, numbers, wanted_units
from ovirt_placement.engine.reading.policies import Policy
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyRequest
from ovirt_placement.rules.rule import UnitKind


@dataclass(frozen=True)
class SetupPlan:
    requests: tuple[PolicyRequest, ...]
    #: What the administrator should know besides them.
    notes: tuple[str, ...]
    #: What clusters have afterwards, and the clusters; None where units only go.
    policy: Policy | None = None
    clusters: tuple[str, ...] = ()


def plan(seen: Seen, choice: UnitChoice) -> SetupPlan:
    """Plan the requests, in order. Raises `UserError` for what the engine lacks or would refuse."""
    policy = policy_at_first(seen, choice)
    check_unlocked(policy)
    check_unspoilt(seen.units, policy)
    wanted = wanted_units(seen, policy, choice)
    known = known_properties(seen, policy, wanted)
    away = parameters_away(seen.units, policy, wanted.weights)
    whole = with_returned(policy, remembered(policy.head.description).away)
    properties = wanted_properties(seen, whole, choice, known)
    clusters = [cluster_properties(cluster, properties, choice, known) for cluster in seen.clusters]
    description = description_to_be(seen, whole, wanted, properties, clusters, away)
    requests = (
        *_creation(seen, policy, description),
        *_filters(seen, policy, wanted),
        *put_aside(policy, away),
        *_weights(seen, policy, wanted),
        # The properties when all units are there that know them.
        *exchange(without(policy, away), _balance(seen, policy, wanted), properties),
        *_replaced(seen, policy, wanted),
        *_all_back(policy, description),
        *_assignments(policy, choice, clusters),
    )
    notes = (*_kept_balance(seen, wanted), *_lost_properties(clusters))
    users = tuple(each.cluster.id for each in clusters)
    return SetupPlan(requests, notes, resulting_policy(seen, policy, wanted), users)


def _creation(seen: Seen, policy: PolicyContent, description: str) -> Iterator[PolicyRequest]:
    """What was before is remembered before anything else."""
    if seen.target is None:
        what = f"make the policy {policy.head.name}"
        yield PolicyRequest(
            what, "POST", "/schedulingpolicies", bodies.new_policy(policy.head.name, description)
        )
    elif description != policy.head.description:
        yield describe(policy, description, "remember in the policy's description what was before")


def _filters(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Iterator[PolicyRequest]:
    present = numbers(policy.filters)
    taken = set(present.values())
    for unit, position in wanted.filters.items():
        if unit not in present:
            # At most one filter is first and one last.
            free = 0 if position in taken else position
            taken.add(free)
            yield attach(policy, "filters", unit, f"add the filter {seen.name(unit)}", position=free)


def _weights(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Iterator[PolicyRequest]:
    for unit, factor in wanted.weights.items():
        coming = f"add the weight {seen.name(unit)} x {factor}"
        yield from set_factor(seen.units, policy, unit, factor, coming)


def _replaced(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Iterator[PolicyRequest]:
    """Last: until then one of the two is there, and knows the parameters of both."""
    for collection, entries in (("filters", policy.filters), ("weights", policy.weights)):
        for entry in entries:
            if entry.unit in wanted.replaced:
                what = f"take out the {collection.removesuffix('s')} {seen.name(entry.unit)}"
                yield detach(policy, collection, entry.unit, what)


def _balance(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> PolicyRequest | None:
    if wanted.balance in numbers(policy.balances):
        return None
    return attach(policy, "balances", wanted.balance, f"set the balance {seen.name(wanted.balance)}")


def _all_back(policy: PolicyContent, description: str) -> Iterator[PolicyRequest]:
    if (settled := with_all_back(description)) != description:
        yield describe(policy, settled, "forget in the policy's description the properties that are back")


def _assignments(
    policy: PolicyContent, choice: UnitChoice, clusters: list[ClusterProperties]
) -> Iterator[PolicyRequest]:
    for each in clusters:
        cluster = each.cluster
        if cluster.policy != policy.head.id or each.kept != cluster.properties:
            what = f"let the cluster {cluster.name} use the policy"
            yield assign(cluster, policy.head.id, choice.properties, what)


def _kept_balance(seen: Seen, wanted: WantedUnits) -> Iterator[str]:
    name = ours.BALANCE.name
    if wanted.balance != ours.unit_id(seen.units, UnitKind.BALANCE, name):
        yield f"the policy keeps its balance {seen.name(wanted.balance)}; {name} would have to take its place"


def _lost_properties(clusters: list[ClusterProperties]) -> Iterator[str]:
    for each in clusters:
        for name, value in each.lost.items():
            lost = f"its property {name}={value}"
            yield f"cluster {each.cluster.name} loses {lost}: no unit of the policy knows it"
