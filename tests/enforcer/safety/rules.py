"""The hard rules of a cluster, from their definitions alone, read off the simulated engine's tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from ovirt_simulator.core.state import State

#: The hosts that each VM is on, or takes room on.
Places = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class HardRule:
    kind: str
    vms: frozenset[str]
    hosts: frozenset[str] = frozenset()

    def violated(self, places: Places) -> bool:
        """Whether it is violated where VMs are so; those that do not run are not among them."""
        there = [host for vm in self.vms for host in set(places.get(vm, ()))]
        if self.kind == "together":
            return len(set(there)) > 1
        if self.kind == "apart":
            return len(set(there)) < len(there)
        return any((host in self.hosts) != (self.kind == "on") for host in there)


def hard_rules(state: State, cluster: str) -> tuple[HardRule, ...]:
    """Positive groups that share VMs are one rule, as for the engine."""
    return (*_together(state, cluster), *_others(state, cluster))


def fewest_migrations(
    rules: Sequence[HardRule], placement: Mapping[str, str], hosts: Collection[str], fixed: Collection[str]
) -> int | None:
    """How many migrations repair all rules at the least; None if nothing does.

    Hosts have room for every VM, so that no migration is needed but those of VMs which end elsewhere.
    """
    ruled = sorted({vm for rule in rules for vm in rule.vms} & placement.keys() - set(fixed))
    known = {vm: {host} for vm, host in placement.items()}
    ends = (
        {**known, **dict(zip(ruled, places, strict=True))}
        for places in product([{host} for host in hosts], repeat=len(ruled))
    )
    costs = (
        sum(known[vm] != end[vm] for vm in ruled)
        for end in ends
        if not any(rule.violated(end) for rule in rules)
    )
    return min(costs, default=None)


def _together(state: State, cluster: str) -> Iterator[HardRule]:
    sets = [
        _members(state, group.id)
        for group in state.groups_of(cluster)
        if group.vms_rule.enabled and group.vms_rule.enforcing and group.vms_rule.positive
    ]
    while overlap := next(((one, other) for one, other in combinations(sets, 2) if one & other), None):
        sets = [one for one in sets if one is not overlap[0] and one is not overlap[1]]
        sets.append(overlap[0] | overlap[1])
    for vms in sets:
        yield HardRule("together", frozenset(vms))


def _others(state: State, cluster: str) -> Iterator[HardRule]:
    for group in state.groups_of(cluster):
        vms = frozenset(_members(state, group.id))
        if group.vms_rule.enabled and group.vms_rule.enforcing and not group.vms_rule.positive:
            yield HardRule("apart", vms)
        if group.hosts_rule.enabled and group.hosts_rule.enforcing:
            kind = "on" if group.hosts_rule.positive else "off"
            yield HardRule(kind, vms, frozenset(group.hosts))
    if state.clusters[cluster].compatibility in {"4.2", "4.3"}:
        for label in state.labels.values():
            vms = frozenset(vm for vm in label.vms if state.vms[vm].cluster == cluster)
            if label.implicit and label.hosts and vms:
                yield HardRule("on", vms, frozenset(label.hosts))


def _members(state: State, group: str) -> set[str]:
    known = state.groups[group]
    return {*known.vms, *(vm for label in known.vm_labels for vm in state.labels[label].vms)}
