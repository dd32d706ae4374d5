"""Single requests that change a policy or what a cluster uses, and those that lead to what it is to hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from lxml import etree

from ovirt_placement.answers.setup.units import MANDATORY
from ovirt_placement.engine.parsing.policies import Entry, PolicyHead, PolicyUnit
from ovirt_placement.engine.writing.policies import ENTRIES, NEW, PolicyContent, PolicyRequest, PolicyUser


@dataclass(frozen=True)
class PlannedRequest(PolicyRequest):
    """A request, and what it makes of the policy, or of the cluster, before it is sent."""

    #: None of a policy that is removed.
    change: Callable[[PolicyContent], PolicyContent | None] = field(
        default=lambda content: content, compare=False
    )
    cluster: PolicyUser | None = None


# -- The XML bodies of the requests that make a policy, fill it, and let a cluster use it.
def new_policy(name: str, description: str) -> bytes:
    return etree.tostring(_element("scheduling_policy", name=name, description=description))


def policy_description(description: str) -> bytes:
    return etree.tostring(_element("scheduling_policy", description=description))


def entry(collection: str, unit: str, number: Mapping[str, int]) -> bytes:
    """A unit of a policy, with its position or factor."""
    body = _element(ENTRIES[collection], **{name: str(value) for name, value in number.items()})
    etree.SubElement(body, "scheduling_policy_unit", id=unit)
    return etree.tostring(body)


def policy_properties(properties: Mapping[str, str]) -> bytes:
    body = etree.Element("scheduling_policy")
    body.append(_property_list("properties", properties))
    return etree.tostring(body)


def assignment(policy: str, properties: Mapping[str, str]) -> bytes:
    """The policy that a cluster uses, and its own values of properties, if it has any."""
    body = etree.Element("cluster")
    etree.SubElement(body, "scheduling_policy", id=policy)
    if properties:
        body.append(_property_list("custom_scheduling_policy_properties", properties))
    return etree.tostring(body)


def _property_list(tag: str, properties: Mapping[str, str]) -> etree._Element:
    listed = etree.Element(tag)
    for name, value in properties.items():
        listed.append(_element("property", name=name, value=value))
    return listed


def _element(tag: str, **texts: str) -> etree._Element:
    element = etree.Element(tag)
    for name, text in texts.items():
        etree.SubElement(element, name).text = text
    return element


# -- Single requests that change a policy or what a cluster uses.
def attach(policy: PolicyContent, collection: str, unit: str, what: str, **number: int) -> PlannedRequest:
    path = f"{policy_path(policy)}/{collection}"
    fresh = Entry(unit, sum(number.values()))

    def change(content: PolicyContent) -> PolicyContent:
        # A policy has one balance: another takes its place.
        there = () if collection == "balances" else getattr(content, collection)
        return _with_entries(content, collection, (*there, fresh))

    return PlannedRequest(what, "POST", path, entry(collection, unit, number), unit=unit, change=change)


def detach(policy: PolicyContent, collection: str, unit: str, what: str) -> PlannedRequest:
    def change(content: PolicyContent) -> PolicyContent:
        there: tuple[Entry, ...] = getattr(content, collection)
        return _with_entries(content, collection, tuple(one for one in there if one.unit != unit))

    return PlannedRequest(what, "DELETE", f"{policy_path(policy)}/{collection}/{unit}", change=change)


def _with_entries(content: PolicyContent, collection: str, entries: tuple[Entry, ...]) -> PolicyContent:
    held: dict[str, Any] = {collection: entries}
    return replace(content, **held)


def describe(
    policy: PolicyContent, description: str, what: str, before: str | None = None
) -> Iterator[PlannedRequest]:
    """Nothing, where that is the policy's description already; `before` is what it is by then."""
    if description != (policy.head.description if before is None else before):
        yield PlannedRequest(
            what,
            "PUT",
            policy_path(policy),
            policy_description(description),
            change=lambda content: replace(content, head=replace(content.head, description=description)),
        )


def create(name: str, description: str) -> PlannedRequest:
    head = PolicyHead(id=NEW, name=name, description=description, locked=False, properties={})
    return PlannedRequest(
        f"make the policy {name}",
        "POST",
        "/schedulingpolicies",
        new_policy(name, description),
        change=lambda _: PolicyContent(head, (), (), ()),
    )


def remove(policy: PolicyContent) -> PlannedRequest:
    what = f"remove the policy {policy.head.name}"
    return PlannedRequest(what, "DELETE", policy_path(policy), change=lambda _: None)


def assign(cluster: PolicyUser, policy_id: str, properties: Mapping[str, str], what: str) -> PlannedRequest:
    after = replace(cluster, policy=policy_id, properties={**cluster.properties, **properties})
    path = f"/clusters/{cluster.id}"
    return PlannedRequest(what, "PUT", path, assignment(policy_id, properties), cluster=after)


def policy_path(policy: PolicyContent) -> str:
    return f"/schedulingpolicies/{policy.head.id}"


def set_properties(policy: PolicyContent, properties: Mapping[str, str]) -> PlannedRequest:
    words = ", ".join(f"{name}={value}" for name, value in properties.items())
    return PlannedRequest(
        f"set the policy's properties: {words or 'none'}",
        "PUT",
        policy_path(policy),
        policy_properties(properties),
        change=lambda content: with_properties(content, properties),
    )


def with_properties(policy: PolicyContent, properties: Mapping[str, str]) -> PolicyContent:
    return replace(policy, head=replace(policy.head, properties=dict(properties)))


def numbers(entries: Sequence[Entry]) -> dict[str, int]:
    return {entry.unit: entry.number for entry in entries}


# -- From what a policy holds to what it is to hold, whether units of ours come or go.
class Words(NamedTuple):
    """What is said of a weight and of a balance that come in."""

    weight: str
    balance: str


@dataclass(frozen=True)
class Goal:
    """What a policy is to hold: units that are there stay, but for those that are to be gone."""

    #: Positions, and factors, by unit.
    filters: Mapping[str, int]
    weights: Mapping[str, int]
    #: None where it stays.
    balance: str | None
    properties: Mapping[str, str]
    gone: Collection[str]
    words: Words


def lead_to(units: Mapping[str, PolicyUnit], policy: PolicyContent, goal: Goal) -> Iterator[PlannedRequest]:
    """The requests in an order that the engine accepts.

    It can only take a weight out, without its parameters, and in again; and it refuses a property that no
    unit knows. So the properties come when all units are there that know them, and what goes, goes last.
    """
    away = parameters_away(units, policy, goal.weights)
    yield from _filters(units, policy, goal.filters)
    kept = {name: value for name, value in policy.head.properties.items() if name not in away}
    if away:
        yield set_properties(policy, kept)
    for unit, factor in goal.weights.items():
        coming = goal.words.weight.format(name=units[unit].name, factor=factor)
        yield from _set_factor(units, policy, unit, factor, coming)
    balance = None
    if goal.balance is not None and goal.balance not in numbers(policy.balances):
        what = goal.words.balance.format(name=units[goal.balance].name)
        balance = attach(policy, "balances", goal.balance, what)
    yield from _exchange(with_properties(policy, kept), balance, goal.properties)
    for collection, entries in (("filters", policy.filters), ("weights", policy.weights)):
        for one in entries:
            if one.unit in goal.gone:
                what = f"take out the {collection.removesuffix('s')} {units[one.unit].name}"
                yield detach(policy, collection, one.unit, what)


def parameters_away(
    units: Mapping[str, PolicyUnit], policy: PolicyContent, factors: Mapping[str, int]
) -> dict[str, str]:
    """Parameters that only weights know whose factors change: the engine refuses those meanwhile."""
    changing = {
        entry.unit for entry in policy.weights if factors.get(entry.unit, entry.number) != entry.number
    }
    staying = {i for i in units if i in policy.units or units[i].name in MANDATORY} - changing
    known = {name for unit in staying for name in units[unit].properties}
    return {n: value for n, value in policy.head.properties.items() if changing and n not in known}


def _filters(
    units: Mapping[str, PolicyUnit], policy: PolicyContent, wanted: Mapping[str, int]
) -> Iterator[PlannedRequest]:
    present = numbers(policy.filters)
    taken = set(present.values())
    for unit, position in wanted.items():
        if unit not in present:
            # At most one filter is first and one last.
            free = 0 if position in taken else position
            taken.add(free)
            yield attach(policy, "filters", unit, f"add the filter {units[unit].name}", position=free)


def _set_factor(
    units: Mapping[str, PolicyUnit], policy: PolicyContent, unit: str, factor: int, coming: str
) -> Iterator[PlannedRequest]:
    """Attach a weight that is not there, which is `coming`, or change its factor."""
    present = numbers(policy.weights).get(unit)
    if present is None:
        yield attach(policy, "weights", unit, coming, factor=factor)
    elif present != factor:
        what = f"change the factor of {units[unit].name} from {present} to {factor}"
        yield detach(policy, "weights", unit, f"{what}: take it out")
        yield attach(policy, "weights", unit, f"{what}: put it back", factor=factor)


def _exchange(
    policy: PolicyContent, balance: PlannedRequest | None, properties: Mapping[str, str]
) -> Iterator[PlannedRequest]:
    """Put another balance in, if there is one, and set the properties.

    The engine refuses a balance while a property is set that only the former one knows. What is to be set
    again must wait for the new one.
    """
    present = policy.head.properties
    if balance is not None:
        lasting = {name: value for name, value in present.items() if name in properties}
        if lasting != present:
            yield set_properties(policy, lasting)
        yield balance
        present = lasting
    if properties != present:
        yield set_properties(policy, properties)
