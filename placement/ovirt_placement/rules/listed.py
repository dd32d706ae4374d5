"""Every rule once, but for those that look at what failures would leave: restarts need not pass these."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ovirt_placement.model import Cluster
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
from ovirt_placement.rules.ha import balance_policy as ha_balance
from ovirt_placement.rules.ha import weight as ha_weight
from ovirt_placement.rules.placement_keys import key_filter, key_weight
from ovirt_placement.rules.placement_rules import rule_filter, rule_weight
from ovirt_placement.rules.rule import Rule, UnitKind

#: In the order in which they are asked and listed.
LISTED: tuple[Rule, ...] = (
    status.RULE,
    memory.RULE,
    cpu.RULE,
    cpu.PINNING_RULE,
    cpu_overloaded.RULE,
    pinning.RULE,
    pinning.LEVEL_RULE,
    vm_filter.RULE,
    host_filter.RULE,
    rule_filter.RULE,
    key_filter.RULE,
    hard_weight.RULE,
    vm_weight.RULE,
    host_weight.RULE,
    rule_weight.RULE,
    ha_weight.RULE,
    key_weight.RULE,
    ha_balance.RULE,
)

#: The engine's own affinity filters, where they differ from ours. They are taken to stand in every policy, as
#: docs/setup.md makes it: the cluster's state does not show it.
ENGINES_OWN: tuple[Rule, ...] = (vm_affinity_groups.RULE, vm_to_hosts_affinity_groups.RULE)

NO_UNITS: frozenset[str] = frozenset()


def those_in_force(
    rules: Iterable[Rule], cluster: Cluster, kind: UnitKind, also: Collection[str] = NO_UNITS
) -> tuple[Rule, ...]:
    """The rules of a kind that count in a cluster, as far as its policy is known.

    Those that a policy must enable count where it does, or where their unit is among `also`.
    """
    return tuple(
        rule
        for rule in rules
        if rule.kind is kind and (not rule.on_request or rule.enabled_in(cluster) or rule.name in also)
    )


def restart_filters(cluster: Cluster) -> tuple[Rule, ...]:
    """All filters that a restart must pass: the engine's own affinity filters stand next to ours."""
    return (*those_in_force(LISTED, cluster, UnitKind.FILTER), *ENGINES_OWN)
