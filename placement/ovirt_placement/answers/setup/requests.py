"""Single requests that change a policy or what a cluster uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_placement.answers.setup import bodies
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyRequest, PolicyUser


def attach(policy: PolicyContent, collection: str, unit: str, what: str, **number: int) -> PolicyRequest:
    path = f"{policy_path(policy)}/{collection}"
    return PolicyRequest(what, "POST", path, bodies.entry(collection, unit, number), unit=unit)


def detach(policy: PolicyContent, collection: str, unit: str, what: str) -> PolicyRequest:
    return PolicyRequest(what, "DELETE", f"{policy_path(policy)}/{collection}/{unit}")


def describe(policy: PolicyContent, description: str, what: str) -> PolicyRequest:
    return PolicyRequest(what, "PUT", policy_path(policy), bodies.policy_description(description))


def assign(cluster: PolicyUser, policy_id: str, properties: Mapping[str, str], what: str) -> PolicyRequest:
    return PolicyRequest(what, "PUT", f"/clusters/{cluster.id}", bodies.assignment(policy_id, properties))


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
    return PolicyRequest(what, "PUT", policy_path(policy), bodies.policy_properties(properties))
