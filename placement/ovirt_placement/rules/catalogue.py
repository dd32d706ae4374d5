"""Every rule once. All readers of "the rules" ask here, and add none of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules.elements.constraints import Constraint
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.failover import admission
from ovirt_placement.rules.listed import ENGINES_OWN, LISTED, NO_UNITS, those_in_force
from ovirt_placement.rules.placement_keys.units import on_accepted_hosts

#: In the order in which they are asked and listed.
RULES: tuple[Rule, ...] = (*LISTED, admission.FILTER, admission.WEIGHT)

#: Those that we have a policy unit for, by the unit's name.
UNITS: dict[str, Rule] = {rule.name: rule for rule in RULES if rule.ours}


def in_force(cluster: Cluster, kind: UnitKind, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """The rules of a kind that count in a cluster, as far as its policy is known.

    Those that a policy must enable count where it does, or where their unit is among `also`.
    """
    return those_in_force(RULES, cluster, kind, also)


def filters_in_force(cluster: Cluster, also: Collection[str] = NO_UNITS) -> tuple[Rule, ...]:
    """All filters that a VM must pass in a cluster: the engine's own affinity filters stand next to ours."""
    return (*in_force(cluster, UnitKind.FILTER, also), *ENGINES_OWN)


def momentary_constraints(snapshot: Snapshot, cluster_id: str) -> Iterator[Constraint]:
    """Invariants that hang on the present answers of filters: what placement keys ask of VMs that run."""
    return on_accepted_hosts(snapshot, cluster_id)


def constraints(snapshot: Snapshot, cluster_id: str) -> Iterator[Constraint]:
    """All invariants of the rules of a cluster, hard and soft."""
    for rule in RULES:
        if rule.constraints is not None:
            yield from rule.constraints(snapshot, cluster_id)
