"""The host that the engine would choose for a VM: by the filters and weights of its cluster's policy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.rules import rank_selector
from ovirt_placement.rules.catalogue import RULES, filters_in_force
from ovirt_placement.rules.engines_weights import ENGINES_WEIGHTS, EnginesWeight
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import Request


class Scheduler:
    """Chooses hosts in snapshots that differ in nothing but where VMs run."""

    def __init__(self) -> None:
        #: The hosts that fixed filters leave of some, by the filter, what its answer hangs on, and the hosts.
        self._left: dict[tuple[str, Hashable, tuple[str, ...]], tuple[str, ...]] = {}
        self._fixed: dict[tuple[str, str], bool] = {}

    def best_host(self, snapshot: Snapshot, vm: Vm, hosts: Sequence[str]) -> str | None:
        """The best of some hosts; None if filters leave none. Of equals, what the engine finds first."""
        left = tuple(hosts)
        for rule in _filters(snapshot, vm):
            if left:
                left = self._filtered(rule, snapshot, vm, left)
        if len(left) < 2:
            return left[0] if left else None
        weights, factors = _weights(snapshot, vm, left)
        return rank_selector.order_hosts(left, weights, factors)[0].host

    def _filtered(self, rule: Rule, snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if not self._is_fixed(rule, snapshot, vm.cluster) or rule.alike is None:
            return _accepted(rule, snapshot, vm, hosts)
        key = (rule.name, rule.alike(snapshot, vm.id), hosts)
        if key not in self._left:
            self._left[key] = _accepted(rule, snapshot, vm, hosts)
        return self._left[key]

    def _is_fixed(self, rule: Rule, snapshot: Snapshot, cluster: str) -> bool:
        """Whether it is in the first of the snapshots: no move that filters let through changes that.

        How busy hosts are changes with each move.
        """
        key = rule.name, cluster
        if key not in self._fixed:
            self._fixed[key] = not rule.reads_hosts and rule.is_fixed(snapshot, cluster)
        return self._fixed[key]


def takes_effect(rule: Rule, cluster: Cluster) -> bool:
    """Whether a policy has our unit; where nobody knows it, a rule of ours that no policy must ask for."""
    if cluster.scheduling_policy is None:
        return not rule.on_request
    return rule.enabled_in(cluster)


def _filters(snapshot: Snapshot, vm: Vm) -> list[Rule]:
    """The filters of the policy; first those that are fixed."""
    cluster = snapshot.cluster_by_id[vm.cluster]
    rules = [rule for rule in filters_in_force(cluster) if not rule.ours or takes_effect(rule, cluster)]
    return sorted(rules, key=lambda rule: not rule.fixed)


def _accepted(rule: Rule, snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> tuple[str, ...]:
    if rule.filter is None:
        return hosts
    verdicts = rule.filter(snapshot, _request(snapshot, vm, hosts, as_engine=rule.ours))
    return tuple(verdict.host for verdict in verdicts if verdict.accepted)


def _request(snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...], *, as_engine: bool) -> Request:
    """The engine moves one VM alone; its own filters know that, ours cannot."""
    parameters = snapshot.cluster_by_id[vm.cluster].scheduling_properties
    return Request((vm.id,), hosts, parameters=parameters, as_engine=as_engine, explained=False)


def _weights(
    snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]
) -> tuple[dict[str | None, dict[str, int]], dict[str, int]]:
    """What each weight says of each host, and how much it counts: the engine's by their ids, ours by name."""
    cluster = snapshot.cluster_by_id[vm.cluster]
    said: dict[str | None, dict[str, int]] = {}
    factors: dict[str, int] = {}
    for one in ENGINES_WEIGHTS:
        factor = _engines_factor(one, cluster)
        if factor > 0:
            factors[one.unit] = factor
            said[one.unit] = one.scores(snapshot, _request(snapshot, vm, hosts, as_engine=False))
    for rule in RULES:
        if rule.weight is not None and rule.enabled_in(cluster) and cluster.scheduling_policy is not None:
            factors[rule.name] = cluster.scheduling_policy.weights[rule.name]
            asked = _request(snapshot, vm, hosts, as_engine=True)
            said[rule.name] = {one.host: one.rank for one in rule.weight(snapshot, asked)}
    return said, factors


def _engines_factor(weight: EnginesWeight, cluster: Cluster) -> int:
    """Where nothing is known of a policy, that of the shipped ones; one that is not in a known one is 0."""
    known = bool(cluster.policy) or cluster.scheduling_policy is not None
    return cluster.policy.get(weight.name, 0) if known else weight.factor
