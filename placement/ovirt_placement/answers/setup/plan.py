"""The requests that lead from what a policy holds to what it is to hold; none if it holds that already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup import bodies
from ovirt_placement.answers.setup.choice import Choice, Seen, policy_at_first
from ovirt_placement.answers.setup.properties import (
    ClusterProperties,
    cluster_properties,
    known_properties,
    wanted_properties,
)
from ovirt_placement.answers.setup.refusals import check_policy
from ovirt_placement.answers.setup.wanted import WantedUnits, numbers, wanted_units
from ovirt_placement.engine.writing.policies import PolicyContent, Request
from ovirt_placement.rules.rule import UnitKind


@dataclass(frozen=True)
class Plan:
    requests: tuple[Request, ...]
    #: What the administrator should know beside them.
    notes: tuple[str, ...]


def plan(seen: Seen, choice: Choice) -> Plan:
    """Plan the requests, in order. Raises `UserError` for what the engine lacks or would refuse."""
    policy = policy_at_first(seen, choice)
    check_policy(seen, policy)
    wanted = wanted_units(seen, policy, choice)
    known = known_properties(seen, policy, wanted)
    properties = wanted_properties(seen, policy, choice, known)
    clusters = [cluster_properties(cluster, properties, choice, known) for cluster in seen.clusters]
    requests = (
        *_creation(seen, choice),
        *_filters(seen, policy, wanted),
        *_weights(seen, policy, wanted),
        *_balance(seen, policy, wanted),
        # When all units are there that know them, and while those still are that will go.
        *_properties(policy, properties),
        *_replaced_weights(seen, policy, wanted),
        *_assignments(policy, choice, clusters),
    )
    return Plan(requests, (*_kept_balance(seen, wanted), *_lost_properties(clusters)))


def _creation(seen: Seen, choice: Choice) -> Iterator[Request]:
    if seen.target is None:
        what = f"make the policy {choice.policy}"
        yield Request(what, "POST", "/schedulingpolicies", bodies.new_policy(choice.policy))


def _filters(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Iterator[Request]:
    present = numbers(policy.filters)
    taken = set(present.values())
    for unit, position in wanted.filters.items():
        if unit not in present:
            # At most one filter is first and one last.
            free = 0 if position in taken else position
            taken.add(free)
            yield _attach(policy, "filters", unit, f"add the filter {seen.name(unit)}", position=free)


def _weights(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Iterator[Request]:
    present = numbers(policy.weights)
    for unit, factor in wanted.weights.items():
        name = seen.name(unit)
        if unit not in present:
            yield _attach(policy, "weights", unit, f"add the weight {name} x {factor}", factor=factor)
        elif present[unit] != factor:
            what = f"change the factor of {name} from {present[unit]} to {factor}"
            yield _detach(policy, "weights", unit, f"{what}: take it out")
            yield _attach(policy, "weights", unit, f"{what}: put it back", factor=factor)


def _balance(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Iterator[Request]:
    if wanted.balance not in numbers(policy.balances):
        what = f"set the balance {seen.name(wanted.balance)}"
        yield _attach(policy, "balances", wanted.balance, what)


def _properties(policy: PolicyContent, properties: Mapping[str, str]) -> Iterator[Request]:
    if properties != policy.head.properties:
        words = ", ".join(f"{name}={value}" for name, value in properties.items())
        what = f"set the policy's properties: {words or 'none'}"
        yield Request(what, "PUT", _path(policy), bodies.policy_properties(properties))


def _replaced_weights(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> Iterator[Request]:
    for entry in policy.weights:
        if entry.unit in wanted.replaced:
            what = f"take out the engine's weight {seen.name(entry.unit)}, which ours replaces"
            yield _detach(policy, "weights", entry.unit, what)


def _assignments(
    policy: PolicyContent, choice: Choice, clusters: list[ClusterProperties]
) -> Iterator[Request]:
    for each in clusters:
        cluster = each.cluster
        if cluster.policy != policy.head.id or each.kept != cluster.properties:
            what = f"let the cluster {cluster.name} use the policy"
            body = bodies.assignment(policy.head.id, choice.properties)
            yield Request(what, "PUT", f"/clusters/{cluster.id}", body)


def _kept_balance(seen: Seen, wanted: WantedUnits) -> Iterator[str]:
    name = ours.BALANCE.name
    if wanted.balance != ours.unit_id(seen.units, UnitKind.BALANCE, name):
        yield f"the policy keeps its balance {seen.name(wanted.balance)}; {name} would have to take its place"


def _lost_properties(clusters: list[ClusterProperties]) -> Iterator[str]:
    for each in clusters:
        for name, value in each.lost.items():
            lost = f"its property {name}={value}"
            yield f"cluster {each.cluster.name} loses {lost}: no unit of the policy knows it"


def _attach(policy: PolicyContent, collection: str, unit: str, what: str, **number: int) -> Request:
    path = f"{_path(policy)}/{collection}"
    return Request(what, "POST", path, bodies.entry(collection, unit, number), unit=unit)


def _detach(policy: PolicyContent, collection: str, unit: str, what: str) -> Request:
    return Request(what, "DELETE", f"{_path(policy)}/{collection}/{unit}")


def _path(policy: PolicyContent) -> str:
    return f"/schedulingpolicies/{policy.head.id}"
