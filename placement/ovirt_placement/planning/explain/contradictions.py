"""Hard rules of any kind that cannot all be satisfied together, and the smallest set of them that cannot.

Groups, placement rules and keys are asked about alike. All their VMs count, as if they ran; pinning is
taken as given, and so is the memory of hosts where all VMs fit without any rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Protocol

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.explain.question import OutOfWork, Question, Work
from ovirt_placement.rules.asks import Ask

_Asks = tuple[Ask, ...]

#: Of no more smaller sets each is tried: the questions about them are the small ones.
_FEW = 200


class Judges(Protocol):
    """Each raises `OutOfWork` if it does not come to an answer."""

    def contradictory(self, asks: Sequence[Ask]) -> _Asks | None:
        """A part of these that cannot be satisfied together; None if all can be."""
        ...

    def left_out(self, asks: Sequence[Ask], among: Sequence[Ask]) -> _Asks:
        """Of `among`, few without which the rest can be satisfied with all of `asks`, which can be."""
        ...


def smallest(judges: Judges, among: Sequence[Ask], found: _Asks) -> tuple[_Asks, bool]:
    """The smallest contradictory set among some, of which one is found; and whether that is proven."""
    best = _minimal(judges, found)
    few = sum(comb(len(among), size) for size in range(len(best))) <= _FEW
    ways = (_by_trying_all, _by_what_all_have_a_part_of)
    for prove in ways if few else reversed(ways):
        try:
            return prove(judges, among, best), True
        except OutOfWork:
            pass
    return best, False


def _minimal(judges: Judges, found: _Asks) -> _Asks:
    """Without what is not needed for it, as far as that is found out; what is about most VMs goes first."""
    left = found
    for one in sorted(found, key=lambda ask: -len(ask.vms)):
        others = tuple(other for other in left if other is not one)
        try:
            fewer = judges.contradictory(others) if len(others) < len(left) else None
        except OutOfWork:
            continue
        left = left if fewer is None else fewer
    return left


def _by_what_all_have_a_part_of(judges: Judges, among: Sequence[Ask], best: _Asks) -> _Asks:
    each: list[_Asks] = []
    while True:
        tried = _least_hitting(among, each)
        if len(tried) >= len(best):
            return best
        if judges.contradictory(tried) is not None:
            return tried
        each.append(judges.left_out(tried, among))


def _by_trying_all(judges: Judges, among: Sequence[Ask], best: _Asks) -> _Asks:
    for size in range(1, len(best)):
        for tried in combinations(among, size):
            if judges.contradictory(tried) is not None:
                return tried
    return best


def _least_hitting(among: Sequence[Ask], each: Sequence[_Asks]) -> _Asks:
    """The fewest that have something of each set. Raises `OutOfWork`."""
    cp = cp_model.CpModel()
    chosen = {id(one): cp.new_bool_var("") for one in among}
    for some in each:
        cp.add_bool_or(chosen[id(one)] for one in some)
    cp.minimize(sum(chosen.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 1.0
    if solver.solve(cp) != cp_model.OPTIMAL:
        raise OutOfWork
    return tuple(one for one in among if solver.boolean_value(chosen[id(one)]))


#: Units of work, not seconds, for all questions about a cluster.
_WORK = 20.0


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What cannot be satisfied together, though without any one of it the rest can."""

    asks: tuple[Ask, ...]
    #: Whether it is proven that no smaller set is contradictory.
    smallest: bool
    #: Whether all of it could be satisfied if hosts had more memory.
    memory: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """Contradictions have nothing in common; without them all that was judged can be satisfied."""

    contradictions: tuple[Contradiction, ...]
    #: What could not be judged with the work allowed.
    unknown: tuple[tuple[Ask, ...], ...]


def judge(snapshot: Snapshot, cluster: str, parts: Iterable[Sequence[Ask]], work: float = _WORK) -> Judgement:
    """Judge parts of a cluster, each by itself."""
    left = Work(work)
    found: list[Contradiction] = []
    unknown: list[tuple[Ask, ...]] = []
    hosts = _hosts_of(snapshot, cluster)
    for part in parts:
        question = Question(snapshot, part, hosts, left)
        rest = tuple(part)
        try:
            question.take_memory_into_account()
            while (among := question.contradictory(rest)) is not None:
                one = _named(question, smallest(question, rest, among))
                found.append(one)
                rest = tuple(ask for ask in rest if all(ask is not other for other in one.asks))
        except OutOfWork:
            unknown.append(rest)
    return Judgement(tuple(found), tuple(unknown))


def _named(question: Question, found: tuple[tuple[Ask, ...], bool]) -> Contradiction:
    named, proven = found
    return Contradiction(named, proven, question.only_for_memory(named))


def _hosts_of(snapshot: Snapshot, cluster: str) -> Mapping[str, int]:
    """The memory of each host."""
    return {host.id: host.memory_mb for host in snapshot.hosts_of_cluster.get(cluster, ())}
