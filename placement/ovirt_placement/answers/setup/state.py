"""A scheduling policy with the clusters that use it, as it is, and as requests would leave it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lxml import etree

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.returning import Overview
from ovirt_placement.engine.parsing.policies import Entry, PolicyHead, PolicyUnit
from ovirt_placement.engine.writing.policies import NEW, PolicyContent, PolicyRequest, PolicyUser
from ovirt_placement.model.record import Record


class PolicyCluster(Record, frozen=True, omit_defaults=False):
    """A cluster that uses a policy."""

    name: str
    #: Its own values of the policy's properties.
    properties: dict[str, str]


class PolicyState(Record, frozen=True, omit_defaults=False, kw_only=True):
    """A scheduling policy, its units by name."""

    policy: str
    description: str
    #: Without those that the engine runs in every policy, listed or not.
    filters: tuple[str, ...]
    #: With their factors.
    weights: dict[str, int]
    balance: str | None
    properties: dict[str, str]
    clusters: tuple[PolicyCluster, ...]


def policy_state(overview: Overview, content: PolicyContent | None) -> PolicyState | None:
    """A policy as it is; none where the engine has none of the name."""
    if content is None:
        return None
    units, head = overview.units, content.head
    return PolicyState(
        policy=head.name,
        description=head.description,
        filters=tuple(sorted({_name(entry, units) for entry in content.filters} - ours.MANDATORY)),
        weights=dict(sorted((_name(e, units), e.number) for e in content.weights)),
        balance=_name(content.balances[0], units) if content.balances else None,
        properties=head.properties,
        clusters=tuple(
            PolicyCluster(user.name, user.properties) for user in overview.users if user.policy == head.id
        ),
    )


def after_requests(
    overview: Overview, content: PolicyContent | None, requests: Iterable[PolicyRequest]
) -> PolicyState | None:
    """The same as these requests would leave it, which are not sent."""
    users = {user.id: user for user in overview.users}
    assigned = set()
    for request in requests:
        body = etree.fromstring(request.body) if request.body else etree.Element("none")
        match (request.method, *request.path.strip("/").split("/")):
            case "POST", "schedulingpolicies":
                content = PolicyContent(_made(body), (), (), ())
            case "PUT", "clusters", cluster:
                users[cluster] = _assigned(users[cluster], body)
                assigned.add(cluster)
            case "DELETE", "schedulingpolicies", _:
                content = None
            case (_, "schedulingpolicies", _, *rest) if content is not None:
                content = _changed(content, rest, body)
    if content is not None:
        users |= {one: _merged(users[one], content, overview.units) for one in assigned}
    return policy_state(replace(overview, users=tuple(users.values())), content)


def _made(body: etree._Element) -> PolicyHead:
    name, description = body.findtext("name") or "", body.findtext("description") or ""
    return PolicyHead(id=NEW, name=name, description=description, locked=False, properties={})


def _changed(content: PolicyContent, rest: list[str], body: etree._Element) -> PolicyContent:
    if not rest:
        description, properties = body.findtext("description"), body.find("properties")
        head = content.head
        if description is not None:
            head = replace(head, description=description)
        if properties is not None:
            head = replace(head, properties=_properties(properties))
        return replace(content, head=head)
    match rest:
        case ["filters", *unit]:
            return replace(content, filters=_entries(content.filters, unit, body))
        case ["weights", *unit]:
            return replace(content, weights=_entries(content.weights, unit, body))
        case [_, *unit]:
            # A policy has one balance: another takes its place.
            return replace(content, balances=_entries((), unit, body))
    return content


def _entries(entries: tuple[Entry, ...], gone: list[str], body: etree._Element) -> tuple[Entry, ...]:
    """Without a unit that is taken out, or with the one of the body."""
    if gone:
        return tuple(one for one in entries if one.unit not in gone)
    number = body.findtext("factor") or body.findtext("position") or "0"
    (attached,) = body.iterfind("scheduling_policy_unit")
    return (*entries, Entry(attached.get("id", ""), int(number)))


def _assigned(user: PolicyUser, body: etree._Element) -> PolicyUser:
    given = body.find("custom_scheduling_policy_properties")
    (policy,) = body.iterfind("scheduling_policy")
    sent = {} if given is None else _properties(given)
    return replace(user, policy=policy.get("id"), properties={**user.properties, **sent})


def _merged(user: PolicyUser, content: PolicyContent, units: Mapping[str, PolicyUnit]) -> PolicyUser:
    """The engine gives a cluster what its policy has, and drops what no unit of the policy knows."""
    if user.policy != content.head.id:
        return user
    there = {*content.units, *(unit for unit, one in units.items() if one.name in ours.MANDATORY)}
    known = {name for unit in there if unit in units for name in units[unit].properties}
    merged = {**content.head.properties, **user.properties}
    return replace(user, properties={name: value for name, value in merged.items() if name in known})


def _properties(listed: etree._Element) -> dict[str, str]:
    return {one.findtext("name") or "": one.findtext("value") or "" for one in listed.iterfind("property")}


def _name(entry: Entry, units: Mapping[str, PolicyUnit]) -> str:
    return units[entry.unit].name if entry.unit in units else entry.unit
