"""What setup must remember of a policy before it changes it, so that it can be undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.choice import Seen
from ovirt_placement.answers.setup.former import (
    Former,
    FormerCluster,
    FormerUnits,
    remembered,
    with_former,
)
from ovirt_placement.answers.setup.properties import ClusterProperties
from ovirt_placement.answers.setup.wanted import WantedUnits, is_own, numbers
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import UnitKind


def description_to_be(
    seen: Seen,
    policy: PolicyContent,
    wanted: WantedUnits,
    properties: Mapping[str, str],
    clusters: Sequence[ClusterProperties],
    away: Mapping[str, str],
) -> str:
    """The policy's description, with what was before. What it remembers stands, whatever is interrupted."""
    before = remembered(policy.head.description)
    units = before.units
    if units is None and not is_own(policy):
        units = _units(seen, policy, wanted, properties)
    if units is not None:
        factors = {**_factors(seen, policy, wanted, units), **units.factors}
        units = replace(units, factors=factors)
    found = Former(units, _clusters(seen, policy, before, clusters), {**before.away, **away})
    return with_former(policy.head.description, found)


def _units(
    seen: Seen, policy: PolicyContent, wanted: WantedUnits, properties: Mapping[str, str]
) -> FormerUnits | None:
    """None if it has units of ours, and nothing of it goes: which of the engine's it had is not known."""
    fresh = not ours.attached(seen.units, policy.units)
    balances = [entry.unit for entry in policy.balances if entry.unit != wanted.balance]
    found = FormerUnits(
        filters_lacked=_lacked(seen, policy, UnitKind.FILTER) if fresh else (),
        weights_lacked=_lacked(seen, policy, UnitKind.WEIGHT) if fresh else (),
        balance=seen.name(balances[0]) if balances else None,
        properties={n: value for n, value in policy.head.properties.items() if n not in properties},
    )
    return found if fresh or found != FormerUnits() else None


def _lacked(seen: Seen, policy: PolicyContent, kind: UnitKind) -> tuple[str, ...]:
    return tuple(
        name
        for name in ours.twins(kind).values()
        if ours.unit_id(seen.units, kind, name, internal=True) not in policy.units
    )


def _factors(seen: Seen, policy: PolicyContent, wanted: WantedUnits, former: FormerUnits) -> dict[str, int]:
    """The factors of the engine's weights that change."""
    present = numbers(policy.weights)
    before = {
        twin: present.get(twin, wanted.weights[twin])
        for twin in ours.weight_twins(seen.units).values()
        if seen.name(twin) not in former.weights_lacked
    }
    return {seen.name(unit): factor for unit, factor in before.items() if factor != wanted.weights[unit]}


def _clusters(
    seen: Seen, policy: PolicyContent, before: Former, clusters: Sequence[ClusterProperties]
) -> dict[str, FormerCluster]:
    found = dict(before.clusters)
    for each in clusters:
        cluster = each.cluster
        if cluster.policy == policy.head.id:
            continue
        if is_own(policy) and cluster.policy == seen.base.head.id and not each.lost:
            found.pop(cluster.id, None)
        else:
            found[cluster.id] = FormerCluster(cluster.policy, dict(each.lost))
    return found
