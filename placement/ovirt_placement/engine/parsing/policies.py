"""Scheduling policies: which units they enable, and how much the weights among them count."""

from __future__ import annotations

from dataclasses import dataclass, field

from ovirt_placement.engine.parsing import xml

_UNIT = "scheduling_policy_unit"


@dataclass(frozen=True)
class PolicyUnit:
    """A policy unit; an external one is disabled while no proxy offers it."""

    name: str
    internal: bool
    enabled: bool
    #: filter, weight or load_balancing.
    type: str = ""
    #: The regular expression of each of its properties, by name.
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicyHead:
    """A scheduling policy without its units."""

    id: str
    name: str
    description: str
    #: The engine's own ones cannot be changed.
    locked: bool
    properties: dict[str, str]


@dataclass(frozen=True)
class Entry:
    """A unit in a policy; a filter has a position (-1 first, 1 last, 0 anywhere), a weight a factor."""

    unit: str
    number: int


def units(content: bytes) -> dict[str, PolicyUnit]:
    """Read `/schedulingpolicyunits`, by id."""
    found = {}
    for element in xml.elements(content, _UNIT):
        fields = xml.children(element, "name", "internal", "enabled", "type", "properties")
        found[xml.identity(element)] = PolicyUnit(
            name=xml.text(fields.get("name")),
            internal=xml.flag(fields.get("internal")),
            enabled=xml.flag(fields.get("enabled")),
            type=xml.text(fields.get("type")),
            properties=xml.properties(fields.get("properties")),
        )
    return found


def heads(content: bytes) -> tuple[PolicyHead, ...]:
    """Read `/schedulingpolicies`."""
    return tuple(_head(element) for element in xml.elements(content, "scheduling_policy"))


def head(content: bytes) -> PolicyHead:
    """Read one policy, as a POST of it is answered."""
    return _head(xml.root(content))


def _head(element: xml.Element) -> PolicyHead:
    fields = xml.children(element, "name", "description", "locked", "properties")
    return PolicyHead(
        id=xml.identity(element),
        name=xml.text(fields.get("name")),
        description=xml.text(fields.get("description")),
        locked=xml.flag(fields.get("locked")),
        properties=xml.properties(fields.get("properties")),
    )


def entries(content: bytes, name: str) -> tuple[Entry, ...]:
    """Read the `filter`, `weight` or `balance` entries of a policy; a spoilt policy has a unit twice."""
    found = []
    for element in xml.elements(content, name):
        fields = xml.children(element, "position", "factor", _UNIT)
        number = xml.number(fields.get("position"), 0) if name == "filter" else 1
        found.append(Entry(_unit(element, fields), xml.number(fields.get("factor"), number)))
    return tuple(found)


def _unit(element: xml.Element, fields: xml.Children) -> str:
    """An entry of a policy has the id of its unit."""
    return xml.reference(fields.get(_UNIT)) or xml.identity(element)
