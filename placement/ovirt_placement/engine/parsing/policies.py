"""Scheduling policies: which units they enable, and how much the weights among them count."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.engine.parsing import xml

_UNIT = "scheduling_policy_unit"


@dataclass(frozen=True)
class Unit:
    """A policy unit; an external one is disabled while no proxy offers it."""

    name: str
    internal: bool
    enabled: bool


def units(content: bytes | None) -> dict[str, Unit]:
    """Read `/schedulingpolicyunits`, by id."""
    found = {}
    for element in () if content is None else xml.elements(content, _UNIT):
        fields = xml.children(element, "name", "internal", "enabled")
        found[xml.identity(element)] = Unit(
            name=xml.text(fields.get("name")),
            internal=xml.flag(fields.get("internal")),
            enabled=xml.flag(fields.get("enabled")),
        )
    return found


def weights(content: bytes | None) -> dict[str, int]:
    """Read `/schedulingpolicies/{id}/weights`: factors by the id of the unit."""
    found = {}
    for element in () if content is None else xml.elements(content, "weight"):
        fields = xml.children(element, "factor", _UNIT)
        found[_unit(element, fields)] = xml.number(fields.get("factor"), 1)
    return found


def filters_and_balance(content: bytes | None) -> tuple[tuple[str, ...], str | None] | None:
    """Read one policy with `follow=filters,balances`: ids of units; None if these are not inside."""
    fields = {} if content is None else xml.children(xml.root(content), "filters", "balances")
    if "filters" not in fields:
        return None
    balances = _units_of(fields.get("balances"), "balance")
    return _units_of(fields["filters"], "filter"), balances[0] if balances else None


def _units_of(element: xml.Element | None, name: str) -> tuple[str, ...]:
    entries = () if element is None else element.iterchildren(name)
    return tuple(_unit(entry, xml.children(entry, _UNIT)) for entry in entries)


def _unit(element: xml.Element, fields: xml.Children) -> str:
    """An entry of a policy has the id of its unit."""
    return xml.reference(fields.get(_UNIT)) or xml.identity(element)
