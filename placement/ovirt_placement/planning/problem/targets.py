"""Where VMs may migrate to as far as no other VM decides it; the filters are asked when it is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.legality import filters_of, request_for
from ovirt_placement.rules.built_in import memory, vm_affinity_groups
from ovirt_placement.rules.rule import Rule

#: What a plan asks anew of every standing: room, and the peers that the engine's own filter looks at.
_ASKED_OF_STANDINGS = (memory.RULE, vm_affinity_groups.RULE)


class Targets(Mapping[str, frozenset[str]]):
    """Hosts by VM. Of VMs that may not move there are none; what was refused is left out.

    Of a VM with a list of hosts, only these: the engine would let one that may be migrated go elsewhere, but
    whoever made the list does not want it there.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        cluster: str,
        hosts: tuple[str, ...],
        movable: frozenset[str],
        refused: frozenset[tuple[str, str]],
    ) -> None:
        self._snapshot = snapshot
        self._cluster = cluster
        self._hosts = hosts
        self._movable = movable
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        for vm, host in refused:
            self._refused[vm].add(host)
        rules = [rule for rule in filters_of(snapshot, cluster) if rule not in _ASKED_OF_STANDINGS]
        # Their answers may change as other VMs move, and no goal tells a plan how.
        swayed = [rule for rule in rules if not rule.fixed and rule.constraints is None]
        self._filters = (*(rule for rule in rules if rule.fixed), *swayed)
        self.guessed = bool(swayed)
        self._known: dict[str, frozenset[str]] = {}
        self._passed: dict[tuple[Rule, Hashable], frozenset[str]] = {}
        self._common: dict[frozenset[frozenset[str]], frozenset[str]] = {}

    def __getitem__(self, vm: str) -> frozenset[str]:
        known = self._known.get(vm)
        if known is None:
            known = self._known[vm] = self._found(vm)
        return known

    def __iter__(self) -> Iterator[str]:
        return iter(vm.id for vm in self._snapshot.vms)

    def __len__(self) -> int:
        return len(self._snapshot.vms)

    def _found(self, vm: str) -> frozenset[str]:
        if vm not in self._movable:
            return frozenset()
        # VMs are alike more often than not: they share the sets, and what these have in common.
        passed = frozenset(self._passed_by(rule, vm) for rule in self._filters)
        common = self._common.get(passed)
        if common is None:
            common = self._common[passed] = frozenset(self._hosts).intersection(*passed)
        # A list of hosts to start on does not bind a VM that may migrate; no plan takes it off them, though.
        if listed := self._snapshot.vm_by_id[vm].pinned_hosts:
            common = common.intersection(listed)
        return common - self._refused[vm] if vm in self._refused else common

    def _passed_by(self, rule: Rule, vm: str) -> frozenset[str]:
        if not rule.fixed or rule.alike is None:
            return self._asked(rule, vm)
        key = (rule, rule.alike(self._snapshot, vm))
        known = self._passed.get(key)
        if known is None:
            known = self._passed[key] = self._asked(rule, vm)
        return known

    def _asked(self, rule: Rule, vm: str) -> frozenset[str]:
        if rule.filter is None:
            return frozenset(self._hosts)
        request = request_for(self._snapshot, self._cluster, (vm,), self._hosts)
        return frozenset(verdict.host for verdict in rule.filter(self._snapshot, request) if verdict.accepted)
