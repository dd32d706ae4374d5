"""Single requests that change a policy or what a cluster uses, with their XML bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree

from ovirt_placement.engine.writing.policies import ENTRIES, PolicyContent, PolicyRequest, PolicyUser


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
def attach(policy: PolicyContent, collection: str, unit: str, what: str, **number: int) -> PolicyRequest:
    path = f"{policy_path(policy)}/{collection}"
    return PolicyRequest(what, "POST", path, entry(collection, unit, number), unit=unit)


def detach(policy: PolicyContent, collection: str, unit: str, what: str) -> PolicyRequest:
    return PolicyRequest(what, "DELETE", f"{policy_path(policy)}/{collection}/{unit}")


def describe(policy: PolicyContent, description: str, what: str) -> PolicyRequest:
    return PolicyRequest(what, "PUT", policy_path(policy), policy_description(description))


def assign(cluster: PolicyUser, policy_id: str, properties: Mapping[str, str], what: str) -> PolicyRequest:
    return PolicyRequest(what, "PUT", f"/clusters/{cluster.id}", assignment(policy_id, properties))


def exchange(
    policy: PolicyContent, balance: PolicyRequest | None, properties: Mapping[str, str]
) -> Iterator[PolicyRequest]:
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


def policy_path(policy: PolicyContent) -> str:
    return f"/schedulingpolicies/{policy.head.id}"


def set_properties(policy: PolicyContent, properties: Mapping[str, str]) -> PolicyRequest:
    words = ", ".join(f"{name}={value}" for name, value in properties.items())
    what = f"set the policy's properties: {words or 'none'}"
    return PolicyRequest(what, "PUT", policy_path(policy), policy_properties(properties))
