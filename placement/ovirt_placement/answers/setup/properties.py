"""What the properties of the finished policy, and of clusters that use it, are to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.choice import Seen, UnitChoice
from ovirt_placement.answers.setup.refusals import check_value
from ovirt_placement.answers.setup.wanted import WantedUnits, is_own
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyUser
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


@dataclass(frozen=True)
class ClusterProperties:
    """What becomes of the properties of a cluster that is to use the policy."""

    cluster: PolicyUser
    kept: Mapping[str, str]
    #: Those that no unit of the policy knows; the engine drops them.
    lost: Mapping[str, str]


def known_properties(seen: Seen, policy: PolicyContent, wanted: WantedUnits) -> dict[str, str]:
    """Return the regular expression of each property that a unit of the finished policy knows."""
    gone = {entry.unit for entry in policy.balances if entry.unit != wanted.balance}
    mandatory = [i for i, unit in seen.units.items() if unit.name in ours.MANDATORY]
    others = [unit for unit in (*policy.units, *wanted.filters, *wanted.weights) if unit not in gone]
    return {
        name: regex
        for unit in (*mandatory, *others, wanted.balance)
        if unit in seen.units
        for name, regex in seen.units[unit].properties.items()
    }


def wanted_properties(
    seen: Seen, policy: PolicyContent, choice: UnitChoice, known: Mapping[str, str]
) -> dict[str, str]:
    """Return what is there and known, with what is asked for. Raises `UserError` for what is not known."""
    merged = {**(seen.base.head.properties if is_own(policy) else {}), **policy.head.properties}
    kept = {name: value for name, value in merged.items() if name in known}
    for name, value in choice.properties.items():
        if name not in known:
            raise UserError(f"--property {name}: no unit of the policy knows it{nearest(name, known)}")
        check_value(name, value, known[name], "--property")
    return {**kept, **choice.properties}


def cluster_properties(
    cluster: PolicyUser, properties: Mapping[str, str], choice: UnitChoice, known: Mapping[str, str]
) -> ClusterProperties:
    """Merge the policy's with the cluster's own. Raises `UserError` for a value that its unit refuses."""
    merged = {**properties, **cluster.properties, **choice.properties}
    kept = {name: value for name, value in merged.items() if name in known}
    for name, value in kept.items():
        check_value(name, value, known[name], f"cluster {cluster.name}")
    return ClusterProperties(
        cluster, kept, {name: merged[name] for name in sorted(merged.keys() - kept.keys())}
    )
