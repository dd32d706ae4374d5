"""What setup must remember of a policy before it changes it, so that it can be undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from ovirt_placement.answers.setup.wanted import WantedUnits, is_own
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import UnitKind


def description_to_be(
    seen: Seen,
    policy: PolicyContent,
    wanted: WantedUnits,
    properties: Mapping[str, str],
    clusters: Sequence[ClusterProperties],
) -> str:
    """The policy's description, with what was before. Written once: an interrupted run changes it no more."""
    before = remembered(policy.head.description)
    units = before.units
    if units is None and not is_own(policy) and not _complete(policy, wanted):
        units = _units(seen, policy, wanted, properties)
    return with_former(policy.head.description, Former(units, _clusters(seen, policy, before, clusters)))


def _complete(policy: PolicyContent, wanted: WantedUnits) -> bool:
    present = set(policy.units)
    needed = {*wanted.filters, *wanted.weights, wanted.balance}
    return needed <= present and present.isdisjoint(wanted.replaced)


def _units(
    seen: Seen, policy: PolicyContent, wanted: WantedUnits, properties: Mapping[str, str]
) -> FormerUnits:
    """Whoever has some of our units already may have lost the engine's for them: those it does not lack."""
    fresh = not ours.attached(seen.units, policy.units)
    balances = [entry.unit for entry in policy.balances if entry.unit != wanted.balance]
    return FormerUnits(
        filters_lacked=_lacked(seen, policy, UnitKind.FILTER, ours.FILTERS) if fresh else (),
        weights_lacked=_lacked(seen, policy, UnitKind.WEIGHT, ours.WEIGHTS) if fresh else (),
        balance=seen.name(balances[0]) if balances else None,
        properties={n: value for n, value in policy.head.properties.items() if n not in properties},
    )


def _lacked(seen: Seen, policy: PolicyContent, kind: UnitKind, twins: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        name
        for name in twins.values()
        if ours.unit_id(seen.units, kind, name, internal=True) not in policy.units
    )


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
