"""What can be wrong with scheduling policies: rules that no unit looks at, and traps of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.engine.parsing.policies import Entry, PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyUser
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import Named
from ovirt_placement.rules.affinity.membership import members
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.rule import Rule, UnitKind

_SETUP = "run ovirt-placement setup --policy {policy}"


@dataclass(frozen=True)
class InUse:
    """A policy that clusters use, by the names of the units that take effect in it."""

    name: str
    locked: bool
    internal_filters: frozenset[str]
    our_filters: frozenset[str]
    #: Factors; a weight that is disabled is not there.
    internal_weights: Mapping[str, int]
    our_weights: Mapping[str, int]
    balances: tuple[str, ...]
    #: Units of ours that stand in it, in effect or not.
    attached: frozenset[str]
    #: The parameters that its units know.
    properties: frozenset[str]
    #: Units that it holds twice, by the engine's mistake.
    repeated: tuple[str, ...]


def in_use(content: PolicyContent, units: Mapping[str, PolicyUnit]) -> InUse:
    """Name the units of a policy."""

    def named(entries: Iterable[Entry], internal: bool) -> dict[str, int]:
        return {
            units[entry.unit].name: entry.number
            for entry in entries
            if entry.unit in units and units[entry.unit].enabled and units[entry.unit].internal is internal
        }

    return InUse(
        name=content.head.name,
        locked=content.head.locked,
        internal_filters=frozenset(named(content.filters, True)),
        our_filters=frozenset(named(content.filters, False)),
        internal_weights=named(content.weights, True),
        our_weights=named(content.weights, False),
        balances=tuple(_name(entry.unit, units) for entry in content.balances),
        attached=frozenset(_name(u, units) for u in content.units if u in units and not units[u].internal),
        properties=frozenset(
            key
            for unit in units
            if unit in content.units or units[unit].name in ours.MANDATORY
            for key in units[unit].properties
        ),
        repeated=tuple(_name(unit, units) for unit, times in Counter(content.units).items() if times > 1),
    )


def examine_policy(policy: InUse) -> Iterator[Finding]:
    """Look at a policy that some cluster uses."""
    setup = remedy(policy)
    for unit in policy.repeated:
        yield Finding(
            kind="unit_held_twice",
            what=f"the engine has {unit} twice in the policy {policy.name}, and refuses every change of it",
            remedy="restart ovirt-engine, which forgets the second",
        )
    if not policy.balances:
        yield Finding(
            kind="no_balance",
            what=f"the policy {policy.name} has no balance: that stops the load balancing of all clusters",
            remedy=f"{setup}, or give it the balance None",
        )
    for own, internal in ours.twins(UnitKind.FILTER).items():
        if own in policy.our_filters and internal not in policy.internal_filters:
            yield Finding(
                kind="no_filter_alongside",
                what=f"the policy {policy.name} has {own} without the engine's filter {internal}:"
                " groups are moved VM by VM, and rules fall when the proxy is away",
                remedy=setup,
            )
    for own, internal in ours.twins(UnitKind.WEIGHT).items():
        factor = policy.our_weights.get(own, 0)
        if factor > 0 and internal not in policy.internal_weights:
            yield Finding(
                kind="no_weight_alongside",
                what=f"the policy {policy.name} has {own} without the engine's weight {internal}:"
                " of VMs that start at once ours can only guess where the others go, and rules fall when the"
                " proxy is away",
                remedy=setup,
            )
        elif factor > policy.internal_weights.get(internal, 0):
            yield Finding(
                kind="weaker_weight_alongside",
                what=f"in the policy {policy.name} the engine's weight {internal} has the factor"
                f" {policy.internal_weights[internal]}, and {own} has {factor}: of VMs that start at once,"
                " what ours guesses outvotes what the engine knows",
                remedy=f"{setup} --factor {own}={factor}",
            )


def examine_properties(user: PolicyUser, policy: InUse) -> Iterator[Finding]:
    """Look for parameters of a cluster that the engine will drop when the cluster is next changed."""
    unknown = sorted(user.properties.keys() - policy.properties)
    if unknown:
        yield Finding(
            kind="unknown_parameters",
            what=f"cluster {user.name} has parameters that no unit of its policy {policy.name} knows:"
            f" {', '.join(unknown)}; the engine drops them when the cluster is next changed",
            remedy="were they renamed? set the new ones by ovirt-placement setup --property",
            cluster=Named(user.id, user.name),
        )


def examine_rules(snapshot: Snapshot, cluster: Cluster, policy: InUse) -> Iterator[Finding]:
    """Look for rules of a cluster that nobody regards: its policy lacks the unit, or has it with factor 0."""
    for rule in UNITS.values():
        asking = _asking(rule, snapshot, cluster)
        if asking is None or _takes_effect(rule, policy):
            continue
        yield Finding(
            kind="rule_means_nothing",
            what=f"cluster {cluster.name}: {asking} when VMs are placed: {_lack(policy, rule)}",
            remedy=remedy(policy, cluster),
            cluster=Named(cluster.id, cluster.name),
            rule=True,
        )


def examine_admission(cluster: Cluster, policy: InUse) -> Iterator[Finding]:
    """Look for admission control in a cluster that reserves nothing."""
    units = [name for name in ours.ADMISSION_UNITS.values() if name in policy.attached]
    if units and not cluster.ha_reservation:
        yield Finding(
            kind="admission_without_reservation",
            what=f"cluster {cluster.name}: its policy {policy.name} has {' and '.join(units)}, which refuses"
            " nothing there: the cluster has no HA reservation",
            remedy="enable HA reservation for the cluster, or take the unit out of the policy",
            cluster=Named(cluster.id, cluster.name),
        )


def _asking(rule: Rule, snapshot: Snapshot, cluster: Cluster) -> str | None:
    """What of a cluster asks for a rule, and that it means nothing."""
    if rule.asked_by_cluster is not None and rule.asked_by_cluster(snapshot, cluster):
        return f"{rule.cluster_asks} nothing"
    if rule.asked_by_group is None:
        return None
    groups = [
        group.name
        for group in snapshot.affinity_groups
        if group.cluster == cluster.id
        and members(snapshot)[group.id]
        and rule.asked_by_group(snapshot, group)
    ]
    strength = "hard" if rule.kind is UnitKind.FILTER else "soft"
    return f"{strength} rules of the groups {', '.join(sorted(groups))} mean nothing" if groups else None


def _takes_effect(rule: Rule, policy: InUse) -> bool:
    """Whether our unit does, or the engine's own."""
    if rule.kind is UnitKind.FILTER:
        return rule.name in policy.our_filters or not policy.internal_filters.isdisjoint(rule.twins)
    own = policy.our_weights.get(rule.name, 0) > 0
    return own or any(policy.internal_weights.get(twin, 0) > 0 for twin in rule.twins)


def _lack(policy: InUse, rule: Rule) -> str:
    """Say why neither our unit nor the engine's takes effect."""
    if rule.name in policy.our_weights:
        return f"its policy {policy.name} has {rule.name} with factor 0"
    if rule.name in policy.attached and rule.name not in policy.our_filters:
        return f"the engine has disabled {rule.name} of its policy {policy.name}"
    if not rule.twins:
        return f"its policy {policy.name} lacks {rule.name}"
    return f"its policy {policy.name} has neither {rule.name} nor the engine's {' or '.join(rule.twins)}"


def remedy(policy: InUse, cluster: Cluster | None = None) -> str:
    """Setup repairs it; the engine's own policies are locked, so it would take another for the cluster."""
    if policy.locked:
        return f"run ovirt-placement setup --cluster {cluster.name if cluster else 'CLUSTER'}"
    return _SETUP.format(policy=policy.name)


def _name(unit: str, units: Mapping[str, PolicyUnit]) -> str:
    return units[unit].name if unit in units else unit
