"""What may be migrated where: by all rules that count in the cluster, and by the engine's own filters.

The one place that answers: plans are checked by it step by step, gates ask it again before each migration,
and problems have from it where VMs may go as far as no other VM decides it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.plan import Step
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.elements.memory import physical_mb, physical_room
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import Reason, Request


def filters_of(snapshot: Snapshot, cluster: str) -> tuple[Rule, ...]:
    """All filters that a migration within a cluster must pass."""
    return filters_in_force(snapshot.cluster_by_id[cluster])


def request_for(snapshot: Snapshot, cluster: str, vms: tuple[str, ...], hosts: tuple[str, ...]) -> Request:
    """The question to a filter: unlike the engine, a plan takes no VM away from its peers."""
    return Request(vms, hosts, parameters=snapshot.cluster_by_id[cluster].scheduling_properties)


def vetoes(
    snapshot: Snapshot, cluster: str, vms: tuple[str, ...], host: str
) -> Iterator[tuple[Rule, Reason]]:
    """Why VMs may not go to a host together, and which rule says so; the engine's own filters come last."""
    request = request_for(snapshot, cluster, vms, (host,))
    for rule in filters_of(snapshot, cluster):
        for verdict in rule.filter(snapshot, request) if rule.filter is not None else ():
            yield from ((rule, reason) for reason in verdict.reasons if reason.kind.veto)


def legal(snapshot: Snapshot, step: Step) -> bool:
    """Whether the rules, capacity and the state of VMs and target let a step be taken now."""
    target = snapshot.host_by_id.get(step.target)
    if target is None:
        return False
    for vm_id, source in zip(step.vms, step.sources, strict=True):
        vm = snapshot.vm_by_id.get(vm_id)
        if vm is None or vm.host != source or vm.cluster != target.cluster or not _moves(vm):
            return False
    return next(vetoes(snapshot, target.cluster, step.vms, step.target), None) is None


def _moves(vm: Vm) -> bool:
    return vm.movable and vm.status == "up"


class ProblemTargets(Mapping[str, frozenset[str]]):
    """Hosts by VM. Of VMs that may not move there are none; what was refused is left out.

    Of a VM with a list of hosts, only these: the engine would let one that may be migrated go elsewhere, but
    the author of the list does not want it there.
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
        rules = [rule for rule in filters_of(snapshot, cluster) if not rule.depends_on.computed]
        # Their answers may change as other VMs move, and no goal describes how.
        self._fixed = frozenset(rule for rule in rules if rule.depends_on.fixed_in(snapshot, cluster))
        swayed = [rule for rule in rules if rule not in self._fixed and rule.constraints is None]
        self._filters = (*(rule for rule in rules if rule in self._fixed), *swayed)
        #: What hosts have physically free; most have more than any VM needs.
        self._rooms = sorted(_rooms(snapshot, hosts))
        most_mb = max((physical_mb(snapshot.vm_by_id[vm]) for vm in movable), default=0)
        self.guessed = bool(swayed) or bool(self._rooms and self._rooms[0][0] < most_mb)
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
        common -= self._too_full(vm)
        return common - self._refused[vm] if vm in self._refused else common

    def _too_full(self, vm: str) -> frozenset[str]:
        """Hosts that have physically too little for it now: no plan reckons with what others free there."""
        needed_mb = physical_mb(self._snapshot.vm_by_id[vm])
        place = bisect_left(self._rooms, (needed_mb, ""))
        return frozenset(host for _, host in self._rooms[:place])

    def _passed_by(self, rule: Rule, vm: str) -> frozenset[str]:
        alike = rule.depends_on.alike
        if rule not in self._fixed or alike is None:
            return self._asked(rule, vm)
        key = (rule, alike(self._snapshot, vm))
        known = self._passed.get(key)
        if known is None:
            known = self._passed[key] = self._asked(rule, vm)
        return known

    def _asked(self, rule: Rule, vm: str) -> frozenset[str]:
        if rule.filter is None:
            return frozenset(self._hosts)
        request = request_for(self._snapshot, self._cluster, (vm,), self._hosts)
        return frozenset(verdict.host for verdict in rule.filter(self._snapshot, request) if verdict.accepted)


def _rooms(snapshot: Snapshot, hosts: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Memory and swap together that are physically free, of each host of which that is known."""
    for name in hosts:
        room = physical_room(snapshot, snapshot.host_by_id[name])
        if room is not None:
            yield room.memory_mb + room.swap_mb, name
