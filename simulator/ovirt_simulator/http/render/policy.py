"""Scheduling policies, their parts and units as the engine shows them."""

from __future__ import annotations

from ovirt_simulator.core.entities import PolicyFilter, PolicyUnit, PolicyWeight, SchedulingPolicy
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.render.cluster import properties

_UNITS = "schedulingpolicyunits"


def scheduling_policy(record: SchedulingPolicy, links: Links) -> str:
    """Render a policy. Its weights cannot be followed: link and attribute have different names."""
    return links.entity(
        "scheduling_policy",
        record.id,
        text("name", record.name),
        text("description", record.description),
        links.links({"filters": "filters", "weights": None, "balances": "balances"}),
        text("default_policy", record.default),
        text("locked", record.locked),
        properties("properties", record.properties),
    )


def scheduling_policy_unit(record: PolicyUnit, links: Links) -> str:
    return links.entity(
        "scheduling_policy_unit",
        record.id,
        text("name", record.name),
        text("description", record.description),
        text("enabled", record.enabled),
        text("internal", record.internal),
        properties("properties", record.properties),
        text("type", record.type),
    )


def policy_filter(record: PolicyFilter, links: Links) -> str:
    return links.entity(
        "filter",
        record.unit,
        text("position", record.position),
        links.reference("scheduling_policy_unit", _UNITS, record.unit),
    )


def policy_weight(record: PolicyWeight, links: Links) -> str:
    return links.entity(
        "weight",
        record.unit,
        text("factor", record.factor),
        links.reference("scheduling_policy_unit", _UNITS, record.unit),
    )


def policy_balance(unit: str, links: Links) -> str:
    return links.entity("balance", unit, links.reference("scheduling_policy_unit", _UNITS, unit))
