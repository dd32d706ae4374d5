"""An oracle for orders: replays migrations, several at once; and random clusters of which an end is known."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ovirt_placement.model import Snapshot
from tests.builders import needed_mb
from tests.placement.planning.brute_force import Assignment, BruteForce


@dataclass(frozen=True)
class Request:
    """VMs that go to one host by one request, and the requests, by number, that must have ended before."""

    vms: tuple[str, ...]
    host: str
    after: tuple[int, ...] = ()


Where = dict[str, str]


class Cluster:
    """The hard rules of a snapshot of one cluster, and what its VMs are by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.known = BruteForce(snapshot)
        self.start = self.named(self.known.start)
        self.memory = {vm.id: needed_mb(vm) for vm in snapshot.vms}
        self.fixed = {vm.id for vm in snapshot.vms if not vm.migratable}
        self.hosts = [host.id for host in snapshot.hosts]
        self.total = self.known.total
        self.positive = self.known.positive
        hard = [(rule, {self.known.vms[at].id for at in rule.vms}) for rule in self.known.rules if rule.hard]
        self.apart = [vms for rule, vms in hard if rule.kind == "apart"]
        self.together = [vms for rule, vms in hard if rule.kind == "together"]
        self.listed = [(vms, rule.hosts, rule.kind == "on") for rule, vms in hard if rule.hosts]

    def named(self, at: Assignment) -> Where:
        return {vm.id: host for vm, host in zip(self.known.vms, at, strict=True)}

    def placed(self, where: Where) -> Assignment:
        return tuple(where[vm.id] for vm in self.known.vms)

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
        return self.known.score(self.placed(where))[0]

    # -- one at a time

    def ways(self) -> dict[Assignment, int]:
        """The fewest migrations to each placement that can be reached."""
        return self.known.cheapest()

    def fewest(self, ways: dict[Assignment, int], where: Where) -> int:
        """Migrations to an end with these VMs there and no more violated than if none else moved."""
        limit = self.violated(self.start | where)
        return min(
            cost
            for state, cost in ways.items()
            if where.items() <= (at := self.named(state)).items() and self.violated(at) <= limit
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
