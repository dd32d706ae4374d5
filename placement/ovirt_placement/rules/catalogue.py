"""Every rule once. All readers of "the rules" ask here, and add none of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.affinity import hard_weight, host_filter, host_weight, vm_filter, vm_weight
from ovirt_placement.rules.built_in import (
    cpu,
    cpu_overloaded,
    memory,
    pinning,
    status,
    vm_affinity_groups,
    vm_to_hosts_affinity_groups,
)
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.ha import admission
from ovirt_placement.rules.ha import balance_policy as ha_balance
from ovirt_placement.rules.ha import weight as ha_weight
from ovirt_placement.rules.placement_keys import key_filter, key_weight
from ovirt_placement.rules.placement_rules import rule_filter, rule_weight
from ovirt_placement.rules.rule import Rule, UnitKind

#: In the order in which they are asked and listed.
RULES: tuple[Rule, ...] = (
    status.RULE,
    memory.RULE,
    cpu.RULE,
    cpu_overloaded.RULE,
    pinning.RULE,
    vm_filter.RULE,
    host_filter.RULE,
    rule_filter.RULE,
    key_filter.RULE,
    admission.FILTER,
    hard_weight.RULE,
    vm_weight.RULE,
    host_weight.RULE,
    rule_weight.RULE,
    ha_weight.RULE,
    key_weight.RULE,
    admission.WEIGHT,
    ha_balance.RULE,
)

#: The engine's own affinity filters, where they differ from ours. They are taken to stand in every policy, as
#: docs/setup.md makes it: the cluster's state does not show it.
ENGINES_OWN: tuple[Rule, ...] = (vm_affinity_groups.RULE, vm_to_hosts_affinity_groups.RULE)

#: Those that we have a policy unit for, by the unit's name.
UNITS: dict[str, Rule] = {rule.name: rule for rule in RULES if rule.ours}

NO_UNITS: frozenset[str] = frozenset()


def in_force(cluster: Cluster, kind: UnitKind, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """The rules of a kind that count in a cluster, as far as its policy is known.

    Those that a policy must enable count where it does, or where their unit is among `also`.
    """
    return tuple(
        rule
        for rule in RULES
        if rule.kind is kind and (not rule.on_request or rule.enabled_in(cluster) or rule.name in also)
    )


def filters_in_force(cluster: Cluster, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """All filters that a VM must pass in a cluster: the engine's own affinity filters stand next to ours."""
    return (*in_force(cluster, UnitKind.FILTER, also), *ENGINES_OWN)


def momentary_constraints(snapshot: Snapshot, cluster_id: str) -> Iterator[Constraint]:
    """Invariants that hang on the present answers of filters, of the rules in force in a cluster."""
    for rule in filters_in_force(snapshot.cluster_by_id[cluster_id]):
        if rule.momentary is not None:
            yield from rule.momentary(snapshot, cluster_id)


def constraints(snapshot: Snapshot, cluster_id: str) -> Iterator[Constraint]:
    """All invariants of the rules of a cluster, hard and soft."""
    for rule in RULES:
        if rule.constraints is not None:
            yield from rule.constraints(snapshot, cluster_id)
