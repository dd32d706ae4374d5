"""The first end: one part after another takes the best that the room left by those before it allows.

A part is of VMs that goals tie together, with what is to be repaired of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import bound, fixed, least_excess, leavers
from ovirt_placement.planning.problem.ends import CandidateHosts, Value, unreached_groups
from ovirt_placement.planning.problem.placement import AT_THE_START, ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.model import Model, ModelScope, goals_of, reduced, roomiest
from ovirt_placement.planning.solver.stages import Solved, Stages, counted, solve


@dataclass(frozen=True)
class Part:
    """Movable VMs that goals tie together, and these goals; all others only take room from them."""

    vms: tuple[str, ...]
    goals: tuple[Goal, ...]

    @property
    def violated(self) -> tuple[Goal, ...]:
        """What is to be repaired."""
        return tuple(goal for goal in self.goals if goal.wanted and not goal.satisfied)

    @property
    def sums(self) -> bool:
        """Whether any of that limits what is on some hosts in sum."""
        return any(goal.sum is not None for goal in self.violated)


def parts_of(problem: Problem, candidates: CandidateHosts) -> list[Part]:
    """All parts in which something is to be repaired and a VM can move."""
    seen: set[str] = set()
    found: list[Part] = []
    for goal in problem.goals:
        if _hopeful(problem, goal):
            for vm in goal.vms:
                if vm not in seen and len(candidates.hosts_of(vm)) > 1:
                    vms = _tied(problem, candidates, vm)
                    seen |= vms
                    found.append(Part(tuple(sorted(vms)), tuple(goals_of(problem, vms))))
    return sorted(found, key=lambda part: (min(goal.level for goal in part.violated), part.vms))


def _hopeful(problem: Problem, goal: Goal) -> bool:
    """Whether some end might repair it, or leave less of it to be repaired."""
    if not goal.wanted or goal.satisfied or goal.form is None:
        return False
    return not fixed(problem, goal) or _may_fall(problem, goal)


def _may_fall(problem: Problem, goal: Goal) -> bool:
    """Whether less of it might be violated in the end, as far as can be seen.

    A VM of an affinity group may go to a host that none of it is on: the engine lets it go nowhere else.
    """
    count = problem.start_count(goal) if goal.partly else None
    if count is None or goal.excess(count) <= least_excess(problem, goal):
        return False
    if not goal.by_pairs:
        return True
    taken = {problem.where[vm] for vm in goal.vms}
    return any(not taken.issuperset(problem.targets[vm]) for vm in goal.vms)


def _tied(problem: Problem, candidates: CandidateHosts, first: str) -> set[str]:
    """VMs that may move and share goals with the first one, or with one that does.

    Also those of a split group that is not to be repaired: one may have to come along for another to move.
    """
    found, waiting = {first}, [first]
    read: set[int] = set()
    while waiting:
        for goal in problem.goals_of.get(waiting.pop(), ()):
            if goal.number in read or not (goal.wanted or goal.satisfied or goal.split):
                continue
            read.add(goal.number)
            fresh = [vm for vm in goal.vms if vm not in found and len(candidates.hosts_of(vm)) > 1]
            found.update(fresh)
            waiting.extend(fresh)
    return found


def offenders(part: Part, problem: Problem) -> set[str]:
    """Those VMs of a part whose moving can repair something, if all goes well."""
    found: set[str] = set()
    start = ProblemPlacement(problem)
    for goal in part.violated:
        found.update(goal.vms if goal.gathers else goal.constraint.offenders(start))
    return found.intersection(part.vms)


#: A part with more places than this to choose from is repaired by its offenders alone.
_MOST_PLACES = 6_000
#: And with more places even so, each VM is offered fewer, if it is about sums.
_MOST_OFFERED = 30_000
#: With this many of these, or more than those, the known end is taken as it is.
_TOO_MANY = 60_000
#: The share of its time in which it is decided which VMs of a part leave their hosts.
_LEAVING_SHARE = 0.3
#: No part takes more than this share of the time that is left, unless there are few.
_PART_SHARE = 0.25


class Construction:
    """An end that grows part by part."""

    def __init__(
        self, problem: Problem, candidates: CandidateHosts, hint: Mapping[str, str] = AT_THE_START
    ) -> None:
        """`hint` is an end that is known: VMs that are elsewhere than at the start, with their hosts."""
        self.problem = problem
        self._hint = hint
        self.candidates = candidates
        self.placement = ProblemPlacement(problem)
        #: Of each part what no end of it is better than, if there were room everywhere.
        self.bounds: dict[Part, Value] = {}
        #: Of each VM of a part all VMs of the part.
        self.part_of: dict[str, tuple[str, ...]] = {}
        self._start = ProblemPlacement(problem)

    def run(self, deadline: Deadline) -> None:
        parts = parts_of(self.problem, self.candidates)
        share = max(_PART_SHARE, 1.0 / max(1, len(parts)))
        for part in parts:
            least = bound(self.problem, part.violated)  # as it is seen goal by goal
            self.bounds[part] = least if deadline.over else self._build(part, least, deadline.within(share))
            self.part_of |= dict.fromkeys(part.vms, part.vms)

    @property
    def bound(self) -> Value:
        """No end is better than this."""
        # Parts have nothing in common but room.
        return tuple(map(sum, zip(self._untouched, *self.bounds.values(), strict=True)))

    def value_of(self, part: Part) -> Value:
        """What a part is worth as things stand, but for what it takes of headroom."""
        sought = (goal for goal in part.goals if goal.wanted or goal.satisfied)
        ended = {vm: self.placement.where(vm) for vm in part.vms}
        unreached = unreached_groups(self.problem, self.candidates, ended)
        violated = (goal for goal in sought if self.placement.violated(goal) or goal in unreached)
        counts = counted(violated, self.placement)
        counts[-1] = sum(vm in self.placement.moved for vm in part.vms)
        return tuple(counts)

    @property
    def _untouched(self) -> Value:
        """What is violated where no part is."""
        return self.violated_besides(goal for part in self.bounds for goal in part.goals)

    def violated_besides(self, goals: Iterable[Goal]) -> Value:
        """What is violated at the start of other goals than these, as far as a model knows."""
        known = {goal.number for goal in goals}
        violated = (
            goal
            for goal in self._start.violated_goals()
            if goal.wanted and goal.form is not None and goal.number not in known
        )
        return tuple(counted(violated, self._start))

    def _build(self, part: Part, least: Value, deadline: Deadline) -> Value:
        """Put a part at its end; what no end of it is better than, where `least` is known to be so."""
        hosts = roomiest(self.placement)
        domains = reduced(self.placement, self.candidates, part.vms, hosts)
        narrow = sum(map(len, domains.values())) > _MOST_PLACES
        if narrow:
            moving = offenders(part, self.problem).union(self._hint.keys() & part.vms)
            domains = reduced(self.placement, self.candidates, moving, hosts)
            if sum(map(len, domains.values())) > (_TOO_MANY if part.sums else _MOST_OFFERED):
                self.placement.put({vm: self._hint[vm] for vm in part.vms if vm in self._hint})
                return least
            domains = self._offered(domains, hosts)
        # Of VMs and hosts that are alike the solver finds no such bound by itself, as of an even spread.
        if narrow and part.sums:
            solved, least = self._repair(part, domains, least, deadline)
        else:
            solved = solve(
                self.placement,
                self.candidates,
                domains,
                deadline,
                least=least,
                hint=self._hint,
                goals=part.goals,
                evenly=not narrow,
                workers=2 if narrow else 1,
            )
        if solved is not None:
            self.placement.put(solved.where)
        value = self.value_of(part)
        if solved is not None:  # with headroom and detours, as the model counts them
            value = (value[0], solved.value[1], *value[2:-1], solved.value[-1])
        return least if value <= least or narrow else max(least, self._bound(part, deadline))

    def _repair(
        self, part: Part, domains: Mapping[str, tuple[str, ...]], least: Value, deadline: Deadline
    ) -> tuple[Solved | None, Value]:
        """The best end of a large part by VMs that violate rules, and what no end of it is better than.

        Which VMs leave is decided first, and then where these go: models that are a tenth as large. Where as
        few move as goal by goal is seen, it is known which may, and how many of them; else those are taken
        that leave where there is room elsewhere. Wider models follow only where these find no place. Where
        no VM comes to a host that another leaves, VMs may go in any order: such ends are preferred.
        """
        home = self.problem.where
        hopeful = [goal for goal in part.violated if not fixed(self.problem, goal)]
        counts = leavers(self.problem, hopeful)
        exactly = {vm for vms, _ in counts for vm in vms}
        loose = self._leaving(part, least, deadline.within(_LEAVING_SHARE), room=False)
        if loose is not None and loose.bound > least:
            counts, least = [], loose.bound
            # Those that find room as it is now are likelier to find a place.
            likely = self._leaving(part, least, deadline.within(_LEAVING_SHARE), room=True) or loose
            exactly = {vm for vm, host in likely.where.items() if host != home[vm]}
        few = reduced(
            self.placement, self.candidates, exactly.intersection(part.vms), roomiest(self.placement)
        )
        wrong = {vm: domains[vm] for vm in offenders(part, self.problem) if vm in domains}
        hint, best = self._hint, None
        for scope, leaving, apart, share in (
            (few, counts, True, 0.3),
            (few, counts, False, 0.4),
            (wrong, [], True, 0.4),
        ):
            left = {home[vm] for vm in scope}
            closed = left if apart else frozenset[str]()
            offered = {vm: (home[vm], *self._fitting(vm, its, left, closed)) for vm, its in scope.items()}
            model = Model(ModelScope(self.placement, self.candidates, offered, goals=part.goals), deadline)
            if not model.whole:
                break
            moved = model.moved
            for vms, number in leaving:
                model.cp.add(sum(moved[vm] for vm in vms if vm in moved) == number)
            solved = Stages(model, workers=2, evenly=False).solve(
                deadline.within(share), least, self._hint, held=True
            )
            if solved is not None:
                best, hint = solved, solved.where
                if solved.value <= least:
                    return solved, least
        solved = solve(
            self.placement,
            self.candidates,
            domains,
            deadline,
            least=least,
            hint=hint,
            goals=part.goals,
            evenly=False,
            workers=2,
        )
        ends = (one for one in (best, solved) if one is not None)
        return min(ends, key=lambda one: one.value, default=None), least

    def _leaving(self, part: Part, least: Value, deadline: Deadline, *, room: bool) -> Solved | None:
        """The best end of a part, were there a place elsewhere for each VM that nothing draws to a host.

        The VMs that move in it are likely to be those of the best end. The place of each is its own, so that
        none is in the way of another there. Without regard to `room`, which others may leave, no end of the
        part is better.
        """
        crowding = {goal for goal in part.goals if goal.sum is not None or goal.limit is not None}
        drawn = {vm for goal in part.violated if goal not in crowding for vm in goal.vms}
        scope = {
            vm: self.candidates.hosts_of(vm) if vm in drawn else (self.problem.where[vm], f"elsewhere {vm}")
            for vm in part.vms
        }
        if sum(map(len, scope.values())) > _MOST_OFFERED:
            return None
        return solve(
            self._start,
            self.candidates,
            scope,
            deadline,
            room=room,
            least=least,
            evenly=False,
            workers=2,
            goals=[goal for goal in part.goals if goal in crowding or drawn.issuperset(goal.vms)],
        )

    def _fitting(
        self, vm: str, hosts: Iterable[str], left: Collection[str], closed: Collection[str]
    ) -> Iterator[str]:
        """Of these hosts those that have room for a VM now, or that others leave; none that are closed."""
        problem, placement = self.problem, self.placement
        for host in hosts:
            if host in closed or host == problem.where[vm]:
                continue
            if host in left or (
                placement.free_mb(host) >= problem.memory_mb[vm]
                and all(
                    goal.lenient or placement.admits(goal, vm, host)
                    for goal in problem.sums_with(host)
                    if goal.binding and problem.in_goal(vm, goal)
                )
            ):
                yield host

    def _offered(
        self, domains: Mapping[str, tuple[str, ...]], order: Sequence[str]
    ) -> Mapping[str, tuple[str, ...]]:
        """With the hosts of the hint; where hosts are too many, only these, and the roomiest."""
        few = sum(map(len, domains.values())) > _MOST_OFFERED
        roomy = frozenset(order[: max(1, _MOST_OFFERED // len(domains))] if few else order)
        start, hint = self.problem.where, self._hint
        return {
            vm: tuple(dict.fromkeys((*(one for one in its if one in roomy or one == start[vm]), *known)))
            for vm, its in domains.items()
            for known in [(hint[vm],) if vm in hint else ()]
        }

    def _bound(self, part: Part, deadline: Deadline) -> Value:
        """What the part could reach if there were room for it everywhere."""
        domains = reduced(self._start, self.candidates, part.vms, self.problem.hosts)
        solved = solve(self._start, self.candidates, domains, deadline, room=False, evenly=False)
        return () if solved is None else solved.bound
