"""Solves a model stage by stage: what matters most first, each stage held fast in those after it."""

import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.ends import CandidateHosts, Value, detour, detouring, score
from ovirt_placement.planning.problem.placement import AT_THE_START, ProblemPlacement, brought
from ovirt_placement.planning.problem.problem import Goal
from ovirt_placement.planning.solver.forms import Term, cp_model
from ovirt_placement.planning.solver.model import Model, ModelScope

#: CPU is counted in hundredths of a percent of a core.
_HUNDREDTHS = 100


class Stage(NamedTuple):
    """Something to make small, and how large it can be."""

    terms: Sequence[Term]
    most: int


class RoomModel:
    """Adds room to a model and offers what it costs."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._problem = model.problem
        placement, domains = model.scope.placement, model.scope.domains
        #: What VMs of which nothing is decided have brought to each host and taken away from it.
        fixed = {vm: target for vm, target in placement.moved.items() if vm not in domains}
        self._brought_mb, self._brought_cpu = brought(self._problem, fixed)
        self._fixed_targets = set(fixed.values())
        self._arrivals: dict[str, list[str]] = {
            host: [vm for vm in vms if self._problem.where[vm] != host] for host, vms in model.on.items()
        }
        self._leaving: dict[str, list[str]] = {}
        for vm in sorted(domains):
            self._leaving.setdefault(self._problem.where[vm], []).append(vm)
        # Where others have come, what left for them may come back.
        returned_to = self._fixed_targets & self._leaving.keys()
        self.targets = [
            host for host in self._problem.hosts if self._arrivals.get(host) or host in returned_to
        ]

    def limit(self) -> None:
        """What arrives must fit, with what leaves reckoned off."""
        for host in self.targets:
            room = self._problem.free_mb[host] - self._brought_mb.get(host, 0)
            arriving = sum(self._problem.memory_mb[vm] for vm in self._arrivals.get(host, ()))
            if arriving <= room:
                continue
            limit = self._model.cp.add(self._growth(host, self._problem.memory_mb) <= room)
            if room < 0 and host not in self._fixed_targets:
                # Overfull already: no VM need leave as long as none comes.
                limit.only_enforce_if(self._arrives(host))

    def headroom_deficit(self) -> Stage:
        """What is taken of the headroom of targets: MiB, and percent of a core."""
        memory, cpu = self._problem.memory_mb, self._problem.cpu
        terms: list[Term] = []
        most = 0
        for host in self.targets:
            spare = max(0, self._problem.spare_mb[host])
            if spare < max(0, self._problem.free_mb[host]):
                most += self._crowd(terms, host, memory, spare - self._brought_mb.get(host, 0))
            if host in self._problem.spare_cpu:
                spare_cpu = max(0.0, self._problem.spare_cpu[host]) - self._brought_cpu.get(host, 0.0)
                most += self._crowd(terms, host, cpu, spare_cpu)
        return Stage(terms, most)

    def fullest(self) -> Term:
        """The share of the fullest target, in thousandths, of memory or CPU."""
        problem, cp = self._problem, self._model.cp
        fullest = cp.new_int_var(0, 1_000_000, "")
        for host in self.targets:
            arrives = cp.new_constant(1) if host in self._fixed_targets else self._arrives(host)
            size = max(1, problem.size_mb[host])
            taken = size - problem.free_mb[host] + self._brought_mb.get(host, 0)
            taken += size * (host in problem.failover)
            cp.add(fullest * size >= 1000 * (taken + self._growth(host, problem.memory_mb))).only_enforce_if(
                arrives
            )
            if host in problem.used_cpu:
                cores = max(1, round(problem.size_cpu[host]))
                used = round(problem.used_cpu[host] + self._brought_cpu.get(host, 0.0))
                cp.add(
                    fullest * cores * _HUNDREDTHS
                    >= 1000 * (used * _HUNDREDTHS + self._growth(host, problem.cpu, _HUNDREDTHS))
                ).only_enforce_if(arrives)
        return fullest

    def _crowd(self, terms: list[Term], host: str, need: Mapping[str, float], spare: float) -> int:
        arriving = sum(need[vm] for vm in self._arrivals.get(host, ()))
        most = max(0, round(arriving - spare))
        if not most:
            return 0
        crowd = self._model.cp.new_int_var(0, most, "")
        self._model.cp.add(
            crowd * _HUNDREDTHS + _HUNDREDTHS // 2
            >= self._growth(host, need, _HUNDREDTHS) - round(spare * _HUNDREDTHS)
        )
        terms.append(crowd)
        return most

    def _growth(self, host: str, need: Mapping[str, float], scale: int = 1) -> Term:
        """What a host has more than at the start by the VMs that the model decides."""
        at = self._model.at
        leaving = self._leaving.get(host, ())
        coming = sum(round(need[vm] * scale) * at[vm, host] for vm in self._arrivals.get(host, ()))
        return coming - sum(round(need[vm] * scale) * (1 - at[vm, host]) for vm in leaving)

    def _arrives(self, host: str) -> cp_model.IntVar:
        arrives = self._model.cp.new_bool_var("")
        for vm in self._arrivals[host]:
            self._model.cp.add_implication(self._model.at[vm, host], arrives)
        return arrives


#: Two stages are solved as one while the larger weight stays below this.
_MOST_WEIGHT = 1_000_000
_SEED = 1
#: Units of work that one run may take where there is no deadline, each a second or so.
_WORK = 60.0
#: Above every objective.
_HIGHEST = 2**60
#: How long it may take to notice that planning is to stop, in seconds.
_WATCH_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Solved:
    """Where the VMs of a scope end."""

    where: Mapping[str, str]
    #: What was reached and what at least is needed, with detours; after one unproven field, bounds are valid
    #: only with it.
    value: Value
    bound: Value


class Stages:
    """The stages of a model, in the order of `Score`."""

    def __init__(self, model: Model, *, workers: int, evenly: bool, work: float | None = None) -> None:
        """`work` limits each run in the solver's own units, so that it ends alike on every machine.

        Only what is compared with bounds is made small if not `evenly`: neither the memory that moves nor
        the fullest target.
        """
        self._model = model
        self._workers = workers
        self._work = work
        self._solver = cp_model.CpSolver()
        if work is not None:
            # Room and counts are sums: where the work is limited, their linear relaxation leads to most.
            self._solver.parameters.linearization_level = 2
        if work is not None or not evenly:
            self._search_at_once()
        headroom_deficit = Stage((), 0)
        room = RoomModel(model)
        if model.scope.room:
            room.limit()
            headroom_deficit = room.headroom_deficit()
        levels = range(model.problem.levels)
        moved, memory_mb = model.moved, model.problem.memory_mb
        hard, *soft = (Stage(model.violated[level], len(model.violated[level])) for level in levels)
        self._stages = [
            hard,
            headroom_deficit,
            *soft,
            Stage(model.excess, model.most_excess),
            Stage((*moved.values(), *model.detours), len(moved) + model.most_detours),
        ]
        if evenly:
            memory = [memory_mb[vm] * one for vm, one in moved.items()]
            self._stages.append(Stage(memory, sum(memory_mb[vm] for vm in moved)))
            self._stages.append(Stage((room.fullest(),), 1_000_000))

    def solve(
        self,
        deadline: Deadline,
        least: Sequence[int] = (),
        hint: Mapping[str, str] = AT_THE_START,
        *,
        held: bool = False,
    ) -> Solved | None:
        """The best found before the deadline; None if not even one was, though where VMs are now is one.

        `least` is a bound that is known already, stage by stage, and `hint` where VMs end in a good end. If
        `held`, only ends are looked for that are as good as the bound but for their migrations: the solver
        needs a fraction of the time for these, and there may be none.
        """
        scope = self._model.scope
        where = {vm: hint.get(vm, scope.placement.where(vm)) for vm in scope.domains}
        values = [0] * len(self._stages)
        bounds = [0] * len(self._stages)
        found = False
        first = len(least) - 1 if held else 0
        for number, stage in enumerate(self._stages[:first]):
            self._model.cp.add(sum(stage.terms) == least[number])
            values[number] = bounds[number] = least[number]
        for group in self._merged(first):
            objective = self._objective(group)
            if isinstance(objective, int):
                for number, value in zip(group, self._split(group, objective), strict=True):
                    values[number] = bounds[number] = value
                continue
            known = group[-1] < len(least) and values[: group[0]] == list(least[: group[0]])
            if known:
                self._model.cp.add(objective >= self._joined(group, least))
            self._hint(where)
            self._model.cp.minimize(objective)
            if known:
                self._stop_at(self._joined(group, least))
            if self._run(deadline) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                break
            found = True
            reached = self._split(group, round(self._solver.objective_value))
            # A solver that is stopped while it simplifies a model may know less than that none is below 0.
            proven = self._split(group, max(0, math.ceil(self._solver.best_objective_bound - 1e-6)))
            where = self._read()
            for number, value, bound in zip(group, reached, proven, strict=True):
                values[number], bounds[number] = value, bound
            self._model.cp.add(objective <= round(self._solver.objective_value))
        length = self._model.problem.levels + 3
        return Solved(where, tuple(values[:length]), tuple(bounds[:length])) if found else None

    def _search_at_once(self) -> None:
        """Without what takes longer than finding a solution, where any or a good one will do."""
        self._solver.parameters.symmetry_level = 0
        self._solver.parameters.cp_model_probing_level = 0

    def _read(self) -> dict[str, str]:
        """Where VMs are in the last solution."""
        return dict(key for key, at in self._model.at.items() if self._solver.boolean_value(at))

    def _merged(self, first: int) -> Iterator[list[int]]:
        """Stages that are solved at once, from one on: of one, the next weighs less than any part."""
        group: list[int] = []
        weight = 1
        for number, stage in enumerate(self._stages[first:], first):
            if group and weight * (stage.most + 1) > _MOST_WEIGHT:
                yield group
                group, weight = [], 1
            group.append(number)
            weight *= stage.most + 1
        yield group

    def _objective(self, group: list[int]) -> Term:
        total: Term = 0
        for number in group:
            total = total * (self._stages[number].most + 1) + sum(self._stages[number].terms)
        return total

    def _joined(self, group: list[int], values: Sequence[int]) -> int:
        total = 0
        for number in group:
            total = total * (self._stages[number].most + 1) + values[number]
        return total

    def _split(self, group: list[int], value: int) -> list[int]:
        parts: list[int] = []
        for number in reversed(group):
            value, part = divmod(value, self._stages[number].most + 1)
            parts.append(part)
        return parts[::-1]

    def _stop_at(self, least: int) -> None:
        """End with the first that is so good: by the constraint alone the solver does not see that."""
        objective = self._model.cp.proto.objective
        objective.domain.extend([least - round(objective.offset), _HIGHEST])

    def _hint(self, where: Mapping[str, str]) -> None:
        self._model.cp.clear_hints()  # type: ignore[no-untyped-call]
        for (vm, host), var in self._model.at.items():
            self._model.cp.add_hint(var, where[vm] == host)

    def _run(self, deadline: Deadline) -> cp_model.CpSolverStatus:
        left = deadline.seconds_left()
        if left <= 0.0:
            return cp_model.UNKNOWN
        parameters = self._solver.parameters
        parameters.num_workers = self._workers
        parameters.random_seed = _SEED
        if left < math.inf:
            parameters.max_time_in_seconds = left
        if self._work is not None or left == math.inf:
            parameters.max_deterministic_time = self._work or _WORK
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(deadline, ended), daemon=True)
        watch.start()
        try:
            return self._solver.solve(self._model.cp)
        finally:
            ended.set()
            watch.join()

    def _watch(self, deadline: Deadline, ended: threading.Event) -> None:
        """Stop the solver as soon as planning is to stop, which may be before the time that it was given."""
        while not ended.wait(_WATCH_SECONDS):
            if deadline.over:
                self._solver.stop_search()


def counted(violated: Iterable[Goal], placement: ProblemPlacement) -> list[int]:
    """A partial value that counts these violated goals, with their excess."""
    counts = [0] * (placement.problem.levels + 3)
    for goal in violated:
        counts[goal.level if goal.hard else goal.level + 1] += 1
        counts[-2] += placement.excess_of(goal)
    return counts


def value_at(placement: ProblemPlacement, candidates: CandidateHosts) -> Value:
    """The value of an end, detours among its migrations; a group counts as violated where no way leads."""
    problem, ended = placement.problem, score(placement)
    found = detouring(problem, candidates, placement.moved)
    detours = [detour(problem, candidates, goal, host) for goal, host in found]
    headroom_deficit = ended.headroom_deficit_mb + ended.headroom_deficit_cpu
    migrations = ended.migrations + sum(more or 0 for more in detours)
    return (ended.hard + detours.count(None), headroom_deficit, *ended.soft, ended.excess, migrations)


#: In larger models ends as good as a known bound are looked for first (a share of the time).
_SMALL = 2_000
_HELD_SHARE = 0.7


def solve(
    placement: ProblemPlacement,
    candidates: CandidateHosts,
    domains: Mapping[str, tuple[str, ...]],
    deadline: Deadline,
    *,
    room: bool = True,
    evenly: bool = True,
    workers: int = 1,
    least: Sequence[int] = (),
    work: float | None = None,
    hint: Mapping[str, str] = AT_THE_START,
    goals: Sequence[Goal] | None = None,
) -> Solved | None:
    """The best end of the VMs that have domains, all others staying where they are."""
    if not domains:
        return None
    scope = ModelScope(placement, candidates, domains, room, goals)
    large = sum(map(len, domains.values())) > _SMALL
    for held in (True, False) if least and large else (False,):
        model = Model(scope, deadline)
        if not model.whole:
            break
        stages = Stages(model, workers=workers, evenly=evenly, work=work)
        within = deadline.within(_HELD_SHARE) if held else deadline
        solved = stages.solve(within, least, hint, held=held)
        if solved is not None:
            return solved
    return None
