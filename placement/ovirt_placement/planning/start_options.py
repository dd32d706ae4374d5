"""Where a VM that does not run could start, and how many migrations each host is from that at least."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.legality import filters_of, request_for
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.forms import AtMost, Same
from ovirt_placement.rules.memory import required_mb


class StartOptions:
    """Of one VM."""

    def __init__(self, snapshot: Snapshot, problem: Problem, vm: str) -> None:
        self._problem = problem
        self._memory_mb = required_mb(snapshot.vm_by_id[vm])
        #: Hosts that it may start on as far as nothing that moves decides it.
        self.hosts = _hosts(snapshot, problem, vm)
        #: Running VMs that it must not share a host with, and those that it must.
        hard = [one for one in constraints(snapshot, problem.cluster) if one.hard and vm in one.vms]
        self.rivals = frozenset(_rivals(hard, vm)) & problem.where.keys()
        gathering = (one.vms for one in hard if isinstance(one.form, Same))
        self._gathering = [running for vms in gathering if (running := problem.where.keys() & vms)]
        self.peers = frozenset[str]().union(*self._gathering)

        start = ProblemPlacement(problem)
        self._at_first = {host: self._distance(start, host) for host in self.hosts}

    def nearest(self, placement: ProblemPlacement) -> list[tuple[int, str]]:
        """Hosts with the migrations that must come first at least, the nearest first; none is hopeless.

        Of those that are as near, the one that has most room at the start comes first.
        """
        touched = {placement.problem.where[vm] for vm in placement.moved} | set(placement.moved.values())
        again = {host: self._distance(placement, host) for host in touched & self._at_first.keys()}
        found = (self._at_first | again).items()
        return sorted(((near, host) for host, near in found if near is not None), key=lambda one: one[0])

    def lacking_mb(self, placement: ProblemPlacement, host: str) -> int:
        """What must be freed there besides what rivals leave behind."""
        left_mb = sum(self._problem.memory_mb[vm] for vm in self.rivals_on(placement, host))
        return self._memory_mb - placement.free_mb(host) - left_mb

    def rivals_on(self, placement: ProblemPlacement, host: str) -> list[str]:
        return sorted(vm for vm in self.rivals if placement.where(vm) == host)

    def movable_on(self, placement: ProblemPlacement, host: str) -> list[str]:
        """VMs that can leave a host, the largest first, and no rivals, which must."""
        problem = self._problem
        here = [vm for vm in problem.on.get(host, ()) if placement.where(vm) == host]
        here += [vm for vm, present in placement.moved.items() if present == host]
        able = (
            vm for vm in here if vm not in self.rivals and vm in problem.memory_mb and problem.targets[vm]
        )
        return sorted(able, key=lambda vm: (-problem.memory_mb[vm], vm))

    def _distance(self, placement: ProblemPlacement, host: str) -> int | None:
        rivals = self.rivals_on(placement, host)
        if not all(self._problem.targets[vm] for vm in rivals):
            return None
        count = len(rivals)
        lacking_mb = self.lacking_mb(placement, host)
        if lacking_mb > 0:
            for vm in self.movable_on(placement, host):
                count += 1
                lacking_mb -= self._problem.memory_mb[vm]
                if lacking_mb <= 0:
                    break
            else:
                return None
        return max(count, self._coming(placement, host))

    def _coming(self, placement: ProblemPlacement, host: str) -> int:
        """Peers that must come at least: a group that is together elsewhere comes whole."""
        coming = set[str]()
        one_at_least = False
        for peers in self._gathering:
            present = {placement.where(vm) for vm in peers}
            if host not in present:
                one_at_least = True
                coming |= peers if len(present) == 1 else set()
        return max(len(coming), one_at_least)


def _hosts(snapshot: Snapshot, problem: Problem, vm: str) -> tuple[str, ...]:
    """By the filters whose answers stay."""
    asked = problem.hosts
    for rule in filters_of(snapshot, problem.cluster):
        if rule.filter is not None and rule.is_fixed(snapshot, problem.cluster) and asked:
            request = request_for(snapshot, problem.cluster, (vm,), asked)
            asked = tuple(verdict.host for verdict in rule.filter(snapshot, request) if verdict.accepted)
    return asked


def _rivals(hard: Iterable[Constraint], vm: str) -> Iterator[str]:
    """VMs none of which may share a host with it."""
    for form, vms in ((one.form, one.vms) for one in hard):
        if isinstance(form, AtMost) and form.most == 1 and not form.place_of:
            yield from (peer for peer in vms if form.own_set(peer) != form.own_set(vm))
