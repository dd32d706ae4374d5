"""The XML bodies of the requests that make a policy, fill it, and let a cluster use it."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from ovirt_placement.engine.writing.policies import ENTRIES


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
