"""An oracle for plans of tiny clusters: walks all placements, knows the rules from their definitions alone.

It shares no code with the planner or the rules: it reads groups, labels, hosts and VMs of the model and
nothing else. All families count: hard and soft groups between VMs, with hosts, and legacy labels.
"""

import random
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Step
from tests.builders import needed_mb

#: The host of each running VM.
Assignment = tuple[str, ...]
#: Violated hard rules; violated soft ones by priority, the highest first.
Violations = tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """One thing that can be violated. `vms` are places in an assignment."""

    kind: str
    vms: tuple[int, ...]
    hosts: frozenset[str]
    hard: bool
    priority: float

    def violated(self, at: Assignment) -> bool:
        hosts = [at[vm] for vm in self.vms]
        if self.kind == "together":
            return len(set(hosts)) > 1
        if self.kind == "apart":
            return len(set(hosts)) < len(hosts)
        return any((host in self.hosts) != (self.kind == "on") for host in hosts)


class BruteForce:
    """All placements that legal migrations reach from a snapshot of one cluster."""

    def __init__(self, snapshot: Snapshot, *, partly: bool = False) -> None:
        """`partly` says whether it counts how far hard negative groups are from holding."""
        self.snapshot = snapshot
        self.partly = partly
        self.vms = [vm for vm in snapshot.vms if vm.host is not None]
        self.index = {vm.id: number for number, vm in enumerate(self.vms)}
        self.hosts = snapshot.hosts
        self.host = {host.id: host for host in snapshot.hosts}
        self.total = {
            host.id: host.free_mb + sum(needed_mb(vm) for vm in self.vms if vm.host == host.id)
            for host in snapshot.hosts
        }
        self.start: Assignment = tuple(vm.host or "" for vm in self.vms)
        labels = {label.id: label for label in snapshot.affinity_labels}
        self.members = {
            group.id: {*group.vms, *(vm for label in group.vm_labels for vm in labels[label].vms)}
            for group in snapshot.affinity_groups
        }
        self.listed = {
            group.id: {*group.hosts, *(host for label in group.host_labels for host in labels[label].hosts)}
            for group in snapshot.affinity_groups
        }
        #: Hard positive groups as the engine has them, and as they are when those that share VMs are one.
        self.positive = [
            self.members[group.id]
            for group in snapshot.affinity_groups
            if group.vms_rule.enabled and group.vms_rule.enforcing and group.vms_rule.positive
        ]
        self.rules = list(self._rules())
        self.priorities = sorted({rule.priority for rule in self.rules if not rule.hard}, reverse=True)
        self.hard_of: defaultdict[int, list[Rule]] = defaultdict(list)
        for rule in self.rules:
            for vm in rule.vms if rule.hard else ():
                self.hard_of[vm].append(rule)

    def _rules(self) -> Iterator[Rule]:
        for vms in self._merged():
            yield from self._rule("together", vms, hard=True)
        for group in self.snapshot.affinity_groups:
            vms, hosts = self.members[group.id], self.listed[group.id]
            by_vm, by_host = group.vms_rule, group.hosts_rule
            if by_vm.enabled and not (by_vm.positive and by_vm.enforcing):
                kind = "together" if by_vm.positive else "apart"
                yield from self._rule(kind, vms, hard=by_vm.enforcing, priority=group.priority)
            if by_host.enabled and hosts:
                kind = "on" if by_host.positive else "off"
                yield from self._rule(kind, vms, hosts, hard=by_host.enforcing, priority=group.priority)
        (cluster,) = self.snapshot.clusters
        if cluster.compatibility in {"4.2", "4.3"}:
            for label in self.snapshot.affinity_labels:
                if label.implicit and label.hosts:
                    yield from self._rule("on", set(label.vms), set(label.hosts), hard=True)

    def _rule(
        self, kind: str, vms: set[str], hosts: set[str] | None = None, *, hard: bool, priority: float = 0.0
    ) -> Iterator[Rule]:
        running = tuple(sorted(self.index[vm] for vm in vms if vm in self.index))
        if len(running) > (kind in {"together", "apart"}):
            yield Rule(kind, running, frozenset(hosts or ()), hard, priority)

    def _merged(self) -> list[set[str]]:
        sets = [set(vms) for vms in self.positive]
        again = True
        while again:
            again = False
            for one, other in combinations(sets, 2):
                if one & other:
                    one |= other
                    sets.remove(other)
                    again = True
                    break
        return sets

    def score(self, at: Assignment) -> Violations:
        violated = [rule for rule in self.rules if rule.violated(at)]
        soft = [sum(not one.hard and one.priority == level for one in violated) for level in self.priorities]
        return (sum(one.hard for one in violated), *soft)

    def worth(self, at: Assignment) -> Violations:
        """The score, and then the pairs on one host that a hard rule wants apart, if they count."""
        apart = [rule.vms for rule in self.rules if rule.hard and rule.kind == "apart" and self.partly]
        return (
            *self.score(at),
            sum(at[one] == at[two] for vms in apart for one, two in combinations(vms, 2)),
        )

    def best(self) -> tuple[Violations, int]:
        """The best worth that can be reached, and the fewest migrations that reach it."""
        return min((self.worth(at), cost) for at, cost in self.cheapest().items())

    def cheapest(self) -> dict[Assignment, int]:
        """Every placement that can be reached, with the fewest migrations that reach it."""
        cheapest = {self.start: 0}
        queue = deque([self.start])
        while queue:
            at = queue.popleft()
            for after, cost in self.migrations(at):
                if cheapest[at] + cost < cheapest.get(after, 10**9):
                    cheapest[after] = cheapest[at] + cost
                    queue.append(after)
        return cheapest

    def follow(self, steps: Iterable[Step]) -> tuple[Assignment, int]:
        """Where steps lead, and how many migrations they are; each must be one that is legal in its turn."""
        at, migrations = self.start, 0
        for step in steps:
            after = self.after_step(at, step)
            assert (after, len(step.vms)) in list(self.migrations(at)), f"illegal: {step}"
            at, migrations = after, migrations + len(step.vms)
        return at, migrations

    def after_step(self, at: Assignment, step: Step) -> Assignment:
        return tuple(
            step.target if vm.id in step.vms else host for vm, host in zip(self.vms, at, strict=True)
        )

    def migrations(self, at: Assignment) -> Iterator[tuple[Assignment, int]]:
        """Placements one request away: of one VM, or of all that must run with it on its host at once."""
        groups = {(vm,) for vm in range(len(self.vms))}
        for rule in self.rules:
            if rule.hard and rule.kind == "together":
                groups |= {tuple(vm for vm in rule.vms if at[vm] == host) for host in at}
        groups.discard(())
        for moving in groups:
            for host in self.hosts:
                if all(at[vm] != host.id for vm in moving) and self.may_go(at, moving, host.id):
                    yield (tuple(host.id if vm in moving else at[vm] for vm in range(len(at))), len(moving))

    def used_mb(self, at: Assignment, host: str) -> int:
        return sum(needed_mb(vm) for vm, there in zip(self.vms, at, strict=True) if there == host)

    def may_go(self, at: Assignment, moving: tuple[int, ...], host: str) -> bool:
        return self.accepts(at, moving, host, {})

    def accepts(self, at: Assignment, moving: tuple[int, ...], host: str, going: Mapping[int, str]) -> bool:
        """VMs that are `going` elsewhere meanwhile count at both ends, and for their peers where they go."""
        held_mb = sum(needed_mb(vm) for number, vm in enumerate(self.vms) if going.get(number) == host)
        needs_mb = sum(needed_mb(self.vms[vm]) for vm in moving)
        if self.used_mb(at, host) + held_mb + needs_mb > self.total[host]:
            return False
        there = tuple(going.get(vm, source) for vm, source in enumerate(at)) if going else at
        if self.host[host].status != "up" or not self.with_peers(there, moving, host):
            return False
        if not all(self.one_may_go(at, vm, moving, host, going) for vm in moving):
            return False
        after = tuple(host if vm in moving else there[vm] for vm in range(len(at)))
        touched = [rule for vm in moving for rule in self.hard_of[vm]]
        return not any(rule.violated(after) and not rule.violated(there) for rule in touched)

    def one_may_go(
        self, at: Assignment, vm: int, moving: tuple[int, ...], host: str, going: Mapping[int, str]
    ) -> bool:
        known = self.vms[vm]
        source = self.host[at[vm]]
        if not known.migratable or known.hosted_engine or known.status != "up":
            return False
        if source.status not in {"up", "preparing_for_maintenance", "non_operational"}:
            return False
        if known.pinned_hosts and host not in known.pinned_hosts:
            return False
        return all(self.rule_lets(rule, at, vm, moving, host, going) for rule in self.hard_of[vm])

    def rule_lets(
        self,
        rule: Rule,
        at: Assignment,
        vm: int,
        moving: tuple[int, ...],
        host: str,
        going: Mapping[int, str],
    ) -> bool:
        others = [other for other in rule.vms if other not in moving]
        if rule.hosts:
            return (host in rule.hosts) == (rule.kind == "on")
        if rule.kind == "apart":
            return len(others) == len(rule.vms) - 1 and not any(
                host in (at[other], going.get(other)) for other in others
            )
        # The engine takes along all of it that are on the host that they leave together.
        if len(moving) > 1 and (
            len({at[one] for one in moving}) > 1
            or any(at[vm] in (at[other], going.get(other)) for other in others)
        ):
            return False
        return not others or any(going.get(other, at[other]) == host for other in others)

    def with_peers(self, at: Assignment, moving: tuple[int, ...], host: str) -> bool:
        """The engine's own filter: to where any VM is that shares a group with any of those that move."""
        names = {self.vms[vm].id for vm in moving}
        direct = {
            at[self.index[other]]
            for group in self.positive
            if group & names
            for other in group - names
            if other in self.index
        }
        return not direct or host in direct


#: Violated hard rules, violated soft rules from the highest priority down, VMs that moved.
Value = tuple[int, tuple[int, ...], int]


class Ends(BruteForce):
    """Of one cluster without labels, whose VMs may all be migrated unless they are said not to be."""

    def best_end(self) -> Value:
        """The least value of all legal ends."""
        hosts = [host.id for host in self.hosts]
        choices = [hosts if vm.migratable else [vm.host or ""] for vm in self.vms]
        return min(self.value(end) for end in product(*choices) if self.why_illegal(end) is None)

    def value(self, end: Assignment) -> Value:
        hard, *soft = self.score(end)
        moved = sum(now != before for now, before in zip(end, self.start, strict=True))
        return hard, tuple(soft), moved

    def pairs(self, end: Assignment) -> int:
        """Pairs of VMs on one host that a hard rule wants apart which is violated at the start."""
        crowded = [rule.vms for rule in self._hard("apart") if rule.violated(self.start)]
        return sum(end[one] == end[other] for vms in crowded for one, other in combinations(vms, 2))

    def why_illegal(self, end: Assignment) -> str | None:
        for rule in self._hard("on", "off"):
            for vm in rule.vms:
                if end[vm] != self.start[vm] and (end[vm] in rule.hosts) != (rule.kind == "on"):
                    return f"the engine refuses {self.vms[vm].id} on {end[vm]}"
        for host, total in self.total.items():
            if self.used_mb(end, host) > total:
                return f"{host} is overfull"
        lost = [rule for rule in self.rules if rule.hard and rule.violated(end)]
        lost = [rule for rule in lost if not rule.violated(self.start)]
        return f"{lost} were satisfied" if lost else None

    def after(self, where: Mapping[str, str]) -> Assignment:
        return tuple(where.get(vm.id, vm.host or "") for vm in self.vms)

    def _hard(self, *kinds: str) -> Iterator[Rule]:
        return (rule for rule in self.rules if rule.hard and rule.kind in kinds)


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
        self.hosts = [host.id for host in snapshot.hosts]
        self.total = self.known.total
        self.positive = self.known.positive
        hard = (rule for rule in self.known.rules if rule.hard and rule.kind == "together")
        self.together = [{self.known.vms[at].id for at in rule.vms} for rule in hard]

    def named(self, at: Assignment) -> Where:
        return {vm.id: host for vm, host in zip(self.known.vms, at, strict=True)}

    def placed(self, where: Where) -> Assignment:
        return tuple(where[vm.id] for vm in self.known.vms)

    def may_begin(self, where: Where, going: Where, request: Request) -> bool:
        """Whether a request is accepted while other VMs are `going` elsewhere."""
        moving, on_their_way = (
            {self.known.index[vm]: there for vm, there in some.items()}
            for some in (dict.fromkeys(request.vms, request.host), going)
        )
        if any(vm in going or where[vm] == request.host for vm in request.vms):
            return False
        return self.known.accepts(self.placed(where), tuple(moving), request.host, on_their_way)

    def violated(self, where: Where) -> int:
        """How many hard rules are violated."""
        return self.known.score(self.placed(where))[0]

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
                if not self.may_begin(where, going, requests[at]):
                    return f"{requests[at]} while {where} and {going}"
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
                    if not self.may_begin(where, going, one):
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
