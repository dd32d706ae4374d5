"""Where VMs may migrate to as far as no other VM decides it; the filters are asked when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_enforcer.planning.legality import filters_of, request_for
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.built_in import memory, vm_affinity_groups
from ovirt_placement.rules.rule import Rule

#: What a plan asks anew of every standing: room, and the peers that the engine's own filter looks at.
_ASKED_OF_STANDINGS = (memory.RULE, vm_affinity_groups.RULE)


class Targets(Mapping[str, frozenset[str]]):
    """Hosts by VM. Of VMs that may not move there are none; what was refused is left out."""

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
        self._refused = refused
        rules = [rule for rule in filters_of(snapshot, cluster) if rule not in _ASKED_OF_STANDINGS]
        # Their answers may change as other VMs move, and no goal tells a plan how.
        swayed = [rule for rule in rules if not rule.fixed and rule.constraints is None]
        self._filters = (*(rule for rule in rules if rule.fixed), *swayed)
        self.guessed = bool(swayed) or bool(refused)
        self._known: dict[str, frozenset[str]] = {}

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
        asked = self._hosts if vm in self._movable else ()
        for rule in self._filters:
            asked = self._passed(rule, vm, asked)
        return frozenset(host for host in asked if (vm, host) not in self._refused)

    def _passed(self, rule: Rule, vm: str, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if rule.filter is None or not hosts:
            return hosts
        request = request_for(self._snapshot, self._cluster, (vm,), hosts)
        return tuple(verdict.host for verdict in rule.filter(self._snapshot, request) if verdict.accepted)
