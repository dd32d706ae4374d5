"""An oracle for orders: replays migrations on the raw data, several at once, and walks all placements.

It shares no code with the planner or the rules: it reads groups, hosts and VMs of the model and nothing else.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ovirt_placement.model import AffinityGroup, Snapshot
from tests.builders import needed_mb


@dataclass(frozen=True)
class Request:
    """VMs that go to one host by one request, and the requests, by number, that must have ended before."""

    vms: tuple[str, ...]
    host: str
    after: tuple[int, ...] = ()


Where = dict[str, str]


class Cluster:
    """The hard rules of a snapshot of one cluster with groups that have direct members only."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.start: Where = {vm.id: vm.host for vm in snapshot.vms if vm.host is not None}
        self.memory = {vm.id: needed_mb(vm) for vm in snapshot.vms}
        self.fixed = {vm.id for vm in snapshot.vms if not vm.migratable}
        self.hosts = [host.id for host in snapshot.hosts]
        self.total = {
            host.id: host.free_mb + sum(self.memory[vm] for vm, at in self.start.items() if at == host.id)
            for host in snapshot.hosts
        }
        groups = snapshot.affinity_groups
        hard = [group for group in groups if group.vms_rule.enabled and group.vms_rule.enforcing]
        self.apart = [self._running(group) for group in hard if not group.vms_rule.positive]
        self.positive = [set(group.vms) for group in hard if group.vms_rule.positive]
        self.together = [tied & self.start.keys() for tied in self._tied()]
        self.listed = [
            (self._running(group), set(group.hosts), group.hosts_rule.positive)
            for group in groups
            if group.hosts_rule.enabled and group.hosts_rule.enforcing and group.hosts
        ]

    def _running(self, group: AffinityGroup) -> set[str]:
        return set(group.vms) & self.start.keys()

    def _tied(self) -> list[set[str]]:
        tied: list[set[str]] = []
        for group in self.positive:
            touching = [one for one in tied if one & group]
            tied = [one for one in tied if not one & group] + [set(group).union(*touching)]
        return tied

    def why_not(self, where: Where, going: Where, request: Request) -> str | None:
        """Why a request is refused while other VMs are `going` elsewhere, or None."""
        target, moving = request.host, set(request.vms)
        for vm in request.vms:
            if vm in going or where[vm] == target or vm in self.fixed:
                return f"{vm} cannot leave {where[vm]} for {target}"
        held = sum(self.memory[vm] for vm, at in where.items() if target in (at, going.get(vm)))
        if held + sum(self.memory[vm] for vm in moving) > self.total[target]:
            return f"no room on {target}"
        for vms, hosts, positive in self.listed:
            if vms & moving and (target in hosts) != positive:
                return f"{target} is a wrong host"
        for rivals in self.apart:
            others = rivals - moving if rivals & moving else set()
            if len(rivals & moving) > 1 or any(target in (where[vm], going.get(vm)) for vm in others):
                return f"a rival is on {target}"
        return self._parted(where, going, moving, target)

    def _parted(self, where: Where, going: Where, moving: set[str], target: str) -> str | None:
        """VMs count where they go; nobody may leave peers that stand whole, nor join no peer."""
        there = {vm: going.get(vm, host) for vm, host in where.items()}
        for tied in self.together:
            if moving & tied and len(moving) > 1:
                source = where[min(moving)]
                with_it = {vm for vm in tied if where[vm] == source}
                if moving != with_it or any(source in (where[vm], going[vm]) for vm in tied & going.keys()):
                    return f"the engine would take others along from {source}"
        direct = {peer for group in self.positive if group & moving for peer in group}
        tied = {peer for one in self.together if one & moving for peer in one}
        for peers in (direct, tied):
            hosts = {there[peer] for peer in peers - moving if peer in there}
            if hosts and target not in hosts:
                return f"no peer of {min(moving)} on {target}"
        return None

    def violated(self, where: Where) -> int:
        """How many hard rules are violated."""
        return (
            sum(len({where[vm] for vm in vms}) > 1 for vms in self.together)
            + sum(len({where[vm] for vm in vms}) < len(vms) for vms in self.apart)
            + sum(any((where[vm] in hosts) != good for vm in vms) for vms, hosts, good in self.listed)
        )

    # -- one at a time

    def requests(self, where: Where) -> Iterator[Request]:
        """All that are legal while nothing moves: of a VM, or of all its peers on its host at once."""
        at_once = {
            tuple(sorted(vm for vm in tied if where[vm] == host))
            for tied in self.together
            for host in self.hosts
        }
        for host in self.hosts:
            for vms in [*((vm,) for vm in sorted(where)), *sorted(one for one in at_once if len(one) > 1)]:
                request = Request(vms, host)
                if self.why_not(where, {}, request) is None:
                    yield request

    def ways(self) -> dict[tuple[str, ...], int]:
        """The fewest migrations to each placement that can be reached, given as hosts of VMs sorted by id."""
        vms = sorted(self.start)
        known = {tuple(self.start[vm] for vm in vms): 0}
        queue = [(0, *known)]
        while queue:
            cost, state = heapq.heappop(queue)
            if known[state] < cost:
                continue
            at = dict(zip(vms, state, strict=True))
            for request in self.requests(at):
                after = at | dict.fromkeys(request.vms, request.host)
                reached = tuple(after[vm] for vm in vms)
                if cost + len(request.vms) < known.get(reached, 10**9):
                    known[reached] = cost + len(request.vms)
                    heapq.heappush(queue, (known[reached], reached))
        return known

    def fewest(self, ways: dict[tuple[str, ...], int], where: Where) -> int:
        """Migrations to an end with these VMs there and no more violated than if none else moved."""
        limit = self.violated(self.start | where)
        return min(
            cost
            for state, cost in ways.items()
            if where.items() <= (at := dict(zip(sorted(self.start), state, strict=True))).items()
            and self.violated(at) <= limit
        )

    # -- many at once

    def replay(self, requests: Sequence[Request], chance: random.Random) -> str | None:
        """Begin and end requests in a random sequence that keeps to `after`; the first fault, or None."""
        where, going = dict(self.start), Where()
        begun, ended = set[int](), set[int]()
        eager = chance.random()
        while len(ended) < len(requests):
            ready = [at for at, one in enumerate(requests) if at not in begun and set(one.after) <= ended]
            running = sorted(begun - ended)
            if ready and (not running or chance.random() < eager):
                at = chance.choice(ready)
                fault = self.why_not(where, going, requests[at])
                if fault is not None:
                    return f"{requests[at]} while {going}: {fault}"
                begun.add(at)
                going |= dict.fromkeys(requests[at].vms, requests[at].host)
            else:
                at = chance.choice(running)
                ended.add(at)
                for vm in requests[at].vms:
                    where[vm] = going.pop(vm)
        return None

    def every_interleaving_is_legal(self, requests: Sequence[Request]) -> bool:
        """The same for all sequences; for few requests only."""
        known = {(frozenset[int](), frozenset[int]())}
        queue = list(known)
        while queue:
            begun, ended = queue.pop()
            where = dict(self.start)
            for at in sorted(ended):
                where |= dict.fromkeys(requests[at].vms, requests[at].host)
            going = {vm: requests[at].host for at in begun - ended for vm in requests[at].vms}
            for at, one in enumerate(requests):
                if at not in begun and ended.issuperset(one.after):
                    if self.why_not(where, going, one) is not None:
                        return False
                    reached = (begun | {at}, ended)
                elif at in begun and at not in ended:
                    reached = (begun, ended | {at})
                else:
                    continue
                if reached not in known:
                    known.add(reached)
                    queue.append(reached)
        return True
