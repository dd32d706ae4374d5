"""Where the VMs of a problem are after some moves, kept up to date: what is violated, and what is legal."""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ovirt_placement.planning.problem.counts import Count, Crowd, InSum
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.rule import OnePlace

AT_THE_START: Mapping[str, str] = {}


class ProblemPlacement(Placement):
    """The problem after some moves. `move` changes it in place; a move back undoes one."""

    def __init__(self, problem: Problem, where: Mapping[str, str] = AT_THE_START) -> None:
        """`where` has VMs that are put elsewhere."""
        self.problem = problem
        #: VMs that are elsewhere than at the start.
        self._moved: dict[str, str] = {}
        self._free_mb: dict[str, int] = dict(problem.free_mb)
        #: VMs by host, of hosts that any VM has left or come to.
        self._on: dict[str, set[str]] = {}
        self._counts: dict[int, Count | None] = {}
        self._violated = {goal.number for goal in problem.goals if not goal.satisfied}
        self._violations = [0] * problem.levels
        for goal in problem.goals:
            self._violations[goal.level] += goal.wanted and not goal.satisfied
        self._excess = problem.excess
        self.put(where)

    # -- where VMs are

    def runs_on(self, vm: str) -> str | None:
        return self._moved.get(vm) or self.problem.where.get(vm)

    def destinations(self, vm: str) -> tuple[str, ...]:
        return self.problem.pending.get(vm) or self.occupied(vm)

    def occupied(self, vm: str) -> tuple[str, ...]:
        host = self.runs_on(vm)
        return (*self.problem.pending.get(vm, ()), *(() if host is None else (host,)))

    def where(self, vm: str) -> str:
        return self._moved.get(vm) or self.problem.where[vm]

    def holding(self, hosts: frozenset[str], vms: Collection[str]) -> Iterator[str]:
        """The VMs that hold any of these hosts: those of `vms` where any is on its way, else all."""
        if self.problem.pending:
            yield from super().holding(hosts, vms)
        else:
            yield from (vm for host in hosts for vm in self.on(host))

    @property
    def moved(self) -> Mapping[str, str]:
        """VMs that are elsewhere than at the start, with their hosts."""
        return self._moved

    def on(self, host: str) -> Collection[str]:
        """VMs on a host."""
        known = self._on.get(host)
        return self.problem.on.get(host, ()) if known is None else known

    def free_mb(self, host: str) -> int:
        """MiB that a host can still hand out; a host that is not up has none."""
        return self._free_mb.get(host, 0)

    def crowd(self, goal: Goal) -> Mapping[str, int]:
        """How many running members of a goal each host has."""
        known = self._count(goal)
        return known.crowd if isinstance(known, Crowd) else Counter(self.where(vm) for vm in goal.vms)

    def in_sum(self, goal: Goal) -> int:
        """What counts of a goal's VMs on its hosts, if that is what it limits."""
        known = self._count(goal)
        return known.there if isinstance(known, InSum) else 0

    def full(self, goal: Goal, vms: Collection[str]) -> Container[str]:
        """Hosts on which VMs would be too many for a goal that limits them, besides those that stay."""
        known = self._count(goal)
        members = list(vms) if len(vms) == 1 else [vm for vm in goal.vms if vm in vms]
        return () if known is None else known.full(members, map(self.where, members))

    # -- what is violated

    def violated(self, goal: Goal) -> bool:
        return goal.number in self._violated

    def faults(self, goal: Goal) -> int:
        """How much of a goal is violated; of a rule that only its constraint knows, whether it is."""
        known = self._count(goal)
        return known.faults if known is not None else self.violated(goal)

    def violated_goals(self) -> tuple[Goal, ...]:
        return tuple(self.problem.goals[number] for number in sorted(self._violated))

    def violations(self) -> tuple[int, ...]:
        """Violated goals that count, by level: wanted ones, and those that were satisfied at the start."""
        return tuple(self._violations)

    @property
    def excess(self) -> int:
        """How much is violated of the goals that are better the less they are."""
        return self._excess

    def excess_of(self, goal: Goal) -> int:
        """How much of one of them is violated; of other goals 0."""
        known = self._count(goal) if goal.partly else None
        return 0 if known is None else goal.excess(known)

    # -- what is legal: every filter of ours and of the engine lets it pass, and no hard rule is newly
    # violated

    def allows(self, move: Move) -> bool:
        """Whether a move is legal now."""
        vms, host = move.vms, move.host
        return self.legal_closure(vms, host) if len(vms) > 1 else self.legal(vms[0], host)

    def legal(self, vm: str, host: str) -> bool:
        """Whether `vm` may migrate to `host` now."""
        return (
            self.where(vm) != host
            and host in self.problem.targets[vm]
            and self.free_mb(host) >= self.problem.memory_mb[vm]
            and all(self.admits(goal, vm, host) for goal in self._concerned(vm, host) if goal.binding)
            and self._joins(self.problem.peers.get(vm, ()), host)
            and not self._newly_violates(Move((vm,), host))
        )

    def admits(self, goal: Goal, vm: str, host: str) -> bool:
        """Whether a goal lets a VM come to a host, as the filters judge: `Constraint.lets`, counted.

        The whole constraint is asked where peers are on their way.
        """
        known = None if self.problem.pending else self._count(goal)
        if known is None:
            return goal.constraint.lets(vm, host, self)
        source = self.where(vm)
        return known.admits(vm, source, host) or (goal.lenient and _no_worse(known, vm, source, host))

    def closure(self, vm: str) -> tuple[str, ...]:
        """The VMs that the engine migrates with one by its affinity closure, that one among them.

        They are those of its hard positive groups, through others as well, that run on its host. Of a split
        group that is a part; of one that stands whole it is all.
        """
        # There is one hard positive group at most, as those that share VMs count as one.
        goals = (goal for goal in self.problem.goals_of.get(vm, ()) if goal.hard and goal.gathers)
        goal, host = next(goals, None), self.where(vm)
        if goal is None:
            return (vm,)
        if self.crowd(goal).get(host) == len(goal.vms):
            return goal.vms
        return tuple(member for member in goal.vms if self.where(member) == host)

    def legal_closure(self, vms: tuple[str, ...], host: str) -> bool:
        """Whether the closure of a VM, as `closure` returns it, may migrate at once to `host`."""
        problem = self.problem
        moving = frozenset(vms)
        goals = {goal.number: goal for vm in vms for goal in problem.goals_of.get(vm, ()) if goal.binding}
        outside = {peer for vm in vms for peer in problem.peers.get(vm, frozenset())} - moving
        return (
            all(self.where(vm) != host and host in problem.targets[vm] for vm in vms)
            and self.free_mb(host) >= sum(problem.memory_mb[vm] for vm in vms)
            and moving == frozenset(self.closure(vms[0]))
            and self._joins(outside, host)
            and not any(self._parts(goal, vms, host) for goal in goals.values())
            and self._come_in_turn(goals.values(), vms, host)
            and not self._newly_violates(Move(vms, host))
        )

    def move(self, vms: Iterable[str], host: str) -> None:
        """Put VMs on a host, legal or not."""
        for vm in vms:
            source = self.where(vm)
            if source == host:
                continue
            goals = self.problem.goals_between(vm, source, host)
            for goal in goals:
                self._count(goal)
            if self.problem.where[vm] == host:
                del self._moved[vm]
            else:
                self._moved[vm] = host
            for place, more_mb in ((source, self.problem.memory_mb[vm]), (host, -self.problem.memory_mb[vm])):
                if place in self._free_mb:
                    self._free_mb[place] += more_mb
                if place not in self._on:
                    self._on[place] = set(self.problem.on.get(place, ()))
            self._on[source].discard(vm)
            self._on[host].add(vm)
            for goal in goals:
                self._recount(goal, vm, source, host)

    def put(self, where: Mapping[str, str]) -> None:
        """Put each VM on its host, legal or not."""
        for vm, host in where.items():
            self.move((vm,), host)

    def _recount(self, goal: Goal, vm: str, source: str, target: str) -> None:
        known = self._counts[goal.number]
        if known is None:
            self._note(goal, violated=not goal.constraint.keeps(self))
            return
        before = goal.excess(known)
        known.move(vm, source, target)
        self._excess += goal.excess(known) - before
        self._note(goal, violated=known.faults > 0)

    def _note(self, goal: Goal, *, violated: bool) -> None:
        if violated is (goal.number in self._violated):
            return
        (self._violated.add if violated else self._violated.discard)(goal.number)
        if goal.wanted or goal.satisfied:
            self._violations[goal.level] += 1 if violated else -1

    def _count(self, goal: Goal) -> Count | None:
        """Counted when it is first asked for, which must be before a member moves."""
        if goal.number not in self._counts:
            known = self.problem.start_count(goal)
            self._counts[goal.number] = None if known is None else known.copied()
        return self._counts[goal.number]

    def _concerned(self, vm: str, host: str) -> tuple[Goal, ...]:
        """The goals of a VM to which it makes a difference that it goes to a host."""
        return self.problem.goals_between(vm, self.where(vm), host)

    def _joins(self, peers: Iterable[str], host: str) -> bool:
        """Whether the engine's own filter sees a peer there, or none anywhere."""
        alone = True
        for peer in peers:
            hosts = self.destinations(peer)
            if host in hosts:
                return True
            alone = alone and not hosts
        return alone

    def _parts(self, goal: Goal, vms: tuple[str, ...], host: str) -> bool:
        """Whether a hard goal keeps VMs that go to a host together off it, or off each other."""
        if goal.gathers:
            return not self._joins(set(goal.vms).difference(vms), host)
        if goal.lenient:  # judged as they come in turn
            return False
        if goal.allowed is not None:
            return not goal.allows(host)
        if goal.limit is None:
            return False
        place, place_of = goal.limit.place(host), goal.limit.place
        there = {vm for vm in goal.vms if any(place_of(one) == place for one in self.occupied(vm))}
        return len(goal.limit.sets(there.union(vms).intersection(goal.vms))) > goal.limit.most

    def _come_in_turn(self, goals: Iterable[Goal], vms: tuple[str, ...], host: str) -> bool:
        """Whether goals let VMs come to a host, as the filter judges: one after another.

        One that draws its VMs to one place may let some come that are on their way together.
        """
        judging = []
        for goal in goals:
            others = (where for vm in goal.vms if vm not in vms for where in self.destinations(vm))
            whole = isinstance(goal.form, OnePlace) and goal.form.admits_whole(host, others)
            if (goal.lenient or goal.collective) and not whole:
                judging.append(goal)
        sources = {vm: self.where(vm) for vm in vms}
        lets = True
        for vm in sorted(vms) if judging else ():
            its = self._concerned(vm, host)
            lets = lets and all(self.admits(goal, vm, host) for goal in judging if goal in its)
            self.move((vm,), host)
        self.put(sources)
        return lets

    def _newly_violates(self, move: Move) -> bool:
        """Whether a satisfied hard goal would be violated; the filters see most of that, but not all."""
        goals = {goal.number: goal for vm in move.vms for goal in self._concerned(vm, move.host)}
        holding = [goal for goal in goals.values() if goal.binding and not self.violated(goal)]
        if not holding:
            return False
        sources = {vm: self.where(vm) for vm in move.vms}
        self.move(move.vms, move.host)
        violates = any(map(self.violated, holding))
        self.put(sources)
        return violates


def _no_worse(known: Count, vm: str, source: str, host: str) -> bool:
    """Whether a violated goal is violated no more with the VM on another host."""
    before = known.faults
    if not before:
        return False
    known.move(vm, source, host)
    after = known.faults
    known.move(vm, host, source)
    return after <= before


def placement_after(problem: Problem, moves: Iterable[Move]) -> ProblemPlacement:
    """Where moves lead, legal or not."""
    placement = ProblemPlacement(problem)
    for move in moves:
        placement.move(move.vms, move.host)
    return placement


def are_legal(problem: Problem, moves: Iterable[Move]) -> bool:
    """Whether each move is legal when its turn comes."""
    placement = ProblemPlacement(problem)
    for move in moves:
        if not placement.allows(move):
            return False
        placement.move(move.vms, move.host)
    return True


def brought(problem: Problem, moved: Mapping[str, str]) -> tuple[Mapping[str, int], Mapping[str, float]]:
    """What hosts have more than at the start by VMs that moved: MiB, and percent of a core."""
    memory, cpu = defaultdict[str, int](int), defaultdict[str, float](float)
    for vm, target in moved.items():
        for host, sign in ((target, 1), (problem.where[vm], -1)):
            memory[host] += sign * problem.memory_mb[vm]
            cpu[host] += sign * problem.cpu[vm]
    return memory, cpu


def after(problem: Problem, moves: Sequence[Move]) -> Problem:
    """The same problem with the end of these moves as its start."""
    placement = placement_after(problem, moves)
    violated = {goal.number for goal in placement.violated_goals()}
    goals = tuple(
        replace(
            goal,
            satisfied=goal.number not in violated,
            surplus=goal.constraint.surplus(placement) if goal.number in violated else 0,
        )
        for goal in problem.goals
    )
    more_mb, more_cpu = brought(problem, placement.moved)
    return replace(
        problem,
        free_mb={host: placement.free_mb(host) for host in problem.hosts},
        spare_mb={host: spare - more_mb[host] for host, spare in problem.spare_mb.items()},
        spare_cpu={host: spare - more_cpu[host] for host, spare in problem.spare_cpu.items()},
        used_cpu={host: used + more_cpu[host] for host, used in problem.used_cpu.items()},
        where={**problem.where, **placement.moved},
        goals=goals,
        goals_of={vm: tuple(goals[goal.number] for goal in its) for vm, its in problem.goals_of.items()},
    )
