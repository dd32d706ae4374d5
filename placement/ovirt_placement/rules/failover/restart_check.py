"""Asks all filters of a cluster whether VMs may start after a failure, one after the other.

VMs that no hard positive group ties to others are asked about together, host by host: only memory and
negative groups connect them, and of several VMs the filters want room for all, and that none excludes
another. The others start in turn, each on the state that the starts before it left, as far as those were on
the same hosts or of VMs that it is tied to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.unified_groups import connected
from ovirt_placement.rules.failover.part_of_state import part_of
from ovirt_placement.rules.failover.ties import bond_of
from ovirt_placement.rules.listed import restart_filters
from ovirt_placement.rules.rule import Rule, Scope
from ovirt_placement.rules.verdict import Request
from ovirt_placement.rules.world import World


class RestartCheck:
    """All filters that a start in one cluster must pass, and what they say of starts after a failure."""

    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        self._snapshot = snapshot
        cluster = snapshot.cluster_by_id[cluster_id]
        self._parameters = cluster.scheduling_properties
        self._filters = tuple(rule for rule in restart_filters(cluster) if rule.filter is not None)
        self._fixed = tuple(rule for rule in self._filters if rule.is_fixed(snapshot, cluster_id))
        #: Whether memory and hard VM groups are all that connects starts on one host.
        scopes = [rule.scope_of(snapshot, cluster_id) for rule in self._filters if rule not in self._fixed]
        self.plain = all(scope is Scope.HOST_AT_ONCE for scope in scopes)
        #: Whether what they say of a host has nothing to do with starts elsewhere, but for affinity.
        self.nearby = all(scope is not Scope.CLUSTER for scope in scopes)
        self._open: dict[str, frozenset[str]] = {}

    def passes(self, failed: frozenset[str], homes: Mapping[str, str], *, settled: bool) -> bool:
        """Whether each start passes every filter, in this order.

        `settled` says that nothing was on its way from or to a failed host.
        """
        apart = settled and self.plain
        bonds = bond_of(self._snapshot)
        crowded = {home for vm, home in homes.items() if not apart or vm in bonds}
        alone: dict[str, list[str]] = {}
        for vm, home in homes.items():
            if home not in crowded:
                alone.setdefault(home, []).append(vm)
        if not all(self.accepted(self._snapshot, vms, (home,)) for home, vms in alone.items()):
            return False
        in_turn = {vm: home for vm, home in homes.items() if home in crowded}
        return all(self._pass_in_turn(failed, starts) for starts in self._independent(in_turn))

    def _pass_in_turn(self, failed: frozenset[str], homes: Mapping[str, str]) -> bool:
        state = self._looked_at(failed, homes)
        for vm, home in homes.items():
            if not self.accepted(state, (vm,), (home,)):
                return False
            state = World(state).starting(vm, home).snapshot
        return True

    def _independent(self, homes: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """The starts in parts that have no home and no tie in common, each in the order of the whole.

        What starts elsewhere changes nothing at a home, but where a VM's positive peers are.
        """
        if not self.nearby:
            yield dict(homes)
            return
        bonds = bond_of(self._snapshot)
        homes_of: dict[str, list[str]] = {}
        for vm, home in homes.items():
            homes_of.setdefault(bonds.get(vm, vm), []).append(home)
        part_of_home = {home: part for part in connected(homes_of.values()) for home in part}
        parts: dict[str, dict[str, str]] = {}
        for vm, home in homes.items():
            parts.setdefault(part_of_home[home][0], {})[vm] = home
        yield from parts.values()

    def failure_state(self, failed: frozenset[str]) -> Snapshot:
        """The state after a failure."""
        return World(self._whole).failed(failed).snapshot

    def _looked_at(self, failed: frozenset[str], homes: Mapping[str, str]) -> Snapshot:
        """As much of it as the filters look at for these homes: that is much quicker."""
        if not self.nearby:
            return self.failure_state(failed)
        part = part_of(self._whole, homes, frozenset(homes.values()))
        return World(part).failed(failed).snapshot

    @cached_property
    def _whole(self) -> Snapshot:
        """The snapshot, with what filters look up in it: they find most of it again after a failure."""
        vms = [vm.id for vm in self._snapshot.vms[:1]]
        hosts = [host.id for host in self._snapshot.hosts[:1]]
        for rule in self._filters:
            self.accepted(self._snapshot, vms, hosts, (rule,))
        return self._snapshot

    def accepted(
        self, state: Snapshot, vms: Sequence[str], hosts: Sequence[str], rules: Sequence[Rule] | None = None
    ) -> tuple[str, ...]:
        """Hosts that all filters accept, one after the other as the engine asks them."""
        left = tuple(hosts)
        for rule in self._filters if rules is None else rules:
            if left and rule.filter is not None:
                asked = Request(tuple(vms), left, parameters=self._parameters, explained=False)
                left = tuple(verdict.host for verdict in rule.filter(state, asked) if verdict.accepted)
        return left

    def open_to(self, vm: str, hosts: Sequence[str]) -> frozenset[str]:
        """Hosts of the cluster that those filters leave to a VM which say the same wherever others are."""
        if vm not in self._open:
            self._open[vm] = frozenset(self.accepted(self._snapshot, (vm,), hosts, self._fixed))
        return self._open[vm]

    def ever_open_to(
        self, state: Snapshot, vm: str, hosts: Sequence[str], others: frozenset[str]
    ) -> frozenset[str]:
        """Hosts that a VM may start on after a failure, before others do or after."""
        rules = [rule for rule in self._filters if self._only_narrows(rule, vm, others)]
        return frozenset(self.accepted(state, (vm,), hosts, rules))

    def only_narrows(self, vm: str, others: frozenset[str]) -> bool:
        """Whether no start of the others can open a host to the VM that is closed to it now."""
        return all(self._only_narrows(rule, vm, others) for rule in self._filters)

    def _only_narrows(self, rule: Rule, vm: str, others: frozenset[str]) -> bool:
        """The same of one filter."""
        return rule in self._fixed or rule.only_narrows(self._snapshot, vm, others)
