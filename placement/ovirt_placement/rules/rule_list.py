"""Every rule once, but for those that look at what failures would leave: restarts need not pass these."""

from collections.abc import Collection, Iterable

from ovirt_placement.model import Cluster
from ovirt_placement.rules.affinity.filters import HOST_FILTER, VM_FILTER
from ovirt_placement.rules.affinity.weights import HOST_WEIGHT, VM_WEIGHT
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.engine_affinity import HOST_GROUPS, VM_GROUPS
from ovirt_placement.rules.engine_filters import (
    CPU_FILTER,
    CPU_LEVEL_FILTER,
    CPU_OVERLOADED_FILTER,
    CPU_PINNING_FILTER,
    MEMORY_FILTER,
    PIN_TO_HOST_FILTER,
    STATUS_FILTER,
)
from ovirt_placement.rules.ha import HA_WEIGHT
from ovirt_placement.rules.placement_keys.units import CHAIN_WEIGHT, KEY_FILTER, KEY_WEIGHT
from ovirt_placement.rules.placement_rules.units import RULE_FILTER, RULE_WEIGHT

#: In the order in which they are asked and listed.
LISTED: tuple[Rule, ...] = (
    STATUS_FILTER,
    MEMORY_FILTER,
    CPU_FILTER,
    CPU_PINNING_FILTER,
    CPU_OVERLOADED_FILTER,
    PIN_TO_HOST_FILTER,
    CPU_LEVEL_FILTER,
    VM_FILTER,
    HOST_FILTER,
    RULE_FILTER,
    KEY_FILTER,
    CHAIN_WEIGHT,
    VM_WEIGHT,
    HOST_WEIGHT,
    RULE_WEIGHT,
    HA_WEIGHT,
    KEY_WEIGHT,
)

#: The engine's own affinity filters, where they differ from ours. They are taken to stand in every policy, as
#: docs/setup.md makes it: the cluster's state does not show it.
ENGINES_OWN: tuple[Rule, ...] = (VM_GROUPS, HOST_GROUPS)

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
