"""What did not reach its bound is decided again, together with what is in its way."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.planning.assignment.optimal.construction import Construction
from ovirt_placement.planning.assignment.optimal.ends import Value, length_of_value, put, solve, value_at
from ovirt_placement.planning.assignment.optimal.neighbourhood import NO_AIMS, Neighbourhood
from ovirt_placement.planning.assignment.optimal.relaxation import relaxed
from ovirt_placement.planning.assignment.spread import spread
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.score import crowded, score

#: A cluster with no more places to choose from is decided as one.
_MOST_PLACES = 12_000
#: Neighbourhoods grow as long as none of them makes the end better, up to this size.
_SIZES = 6
#: The work that a neighbourhood of size 1 may take; it grows with the square of the size.
_WORK = 0.2
#: The size of that of all parts that found too little room, as long as each of them aims at one host.
_AIMING = 2
#: Parts with more VMs are left as they are.
_MOST_VMS = 150


class Improvement:
    """Makes the end of a construction better, until it reaches the bound or nothing more can be tried."""

    def __init__(self, construction: Construction) -> None:
        self._construction = construction
        self._placement = construction.placement
        #: No end is better than this.
        self.bound = construction.bound
        self._places = None if self.value <= self.bound else self._decided_whole()
        self._followed = False
        self._size = 1

    @property
    def value(self) -> Value:
        """What the end is worth now."""
        return value_at(self._placement, self._construction.candidates)

    @property
    def where(self) -> Mapping[str, str]:
        """The end: VMs that are elsewhere than at the start, with their hosts."""
        return dict(self._placement.moved)

    def run(self, deadline: Deadline) -> None:
        """Improve the end as it stands; what was begun goes on where a deadline ended it."""
        if self.value <= self.bound:
            return
        if self._places is not None:
            self._whole(self._places, deadline)
            return
        if not self._followed:
            self._followed = True
            self._follow(deadline)
        while self._size <= _SIZES and self.value > self.bound and not deadline.over:
            if not self._sweep(deadline) and not deadline.over:
                self._size += 1
        put(self._placement, spread(self._construction.problem, self.where))

    def run_from(self, where: Mapping[str, str], deadline: Deadline) -> Mapping[str, str]:
        """The same from another end."""
        placement, homes = self._placement, self._construction.problem.where
        if where != placement.moved:
            put(placement, {vm: homes[vm] for vm in placement.moved.keys() - where.keys()})
            put(placement, where)
            self._size = 1
        self.run(deadline)
        return self.where

    def _decided_whole(self) -> Mapping[str, tuple[str, ...]] | None:
        """All VMs that may move, with their hosts; None if these are too many to be decided as one."""
        candidates = self._construction.candidates
        places = {
            vm: hosts for vm in self._construction.problem.memory_mb if len(hosts := candidates.of(vm)) > 1
        }
        return places if sum(map(len, places.values())) <= _MOST_PLACES else None

    def _whole(self, places: Mapping[str, tuple[str, ...]], deadline: Deadline) -> None:
        construction = self._construction
        fixed = construction.untouched
        least = tuple(one - other for one, other in zip(self.bound, fixed, strict=True))
        before = self._merit
        solved = solve(self._placement, construction.candidates, places, deadline, workers=2, least=least)
        if solved is None:
            return
        self._put_if_better(solved.where, before)
        length = length_of_value(construction.problem)
        self.bound = max(self.bound, tuple(map(sum, zip(solved.bounds[:length], fixed, strict=True))))

    def _follow(self, deadline: Deadline) -> None:
        """Take the parts that found too little room to where they would cost least if others made way."""
        found = relaxed(self._construction, deadline)
        self.bound = max(self.bound, found.bound)
        if found.where:
            self._decide(tuple(found.where), _AIMING, deadline, found.where)

    def _sweep(self, deadline: Deadline) -> bool:
        """Whether any neighbourhood made the end better."""
        better = False
        for seed in self._seeds():
            if deadline.over or self.value <= self.bound:
                break
            better = self._decide(seed, self._size, deadline) or better
        return better

    def _seeds(self) -> list[tuple[str, ...]]:
        """Parts that could be better, those for which bystanders made way, and these bystanders."""
        construction, placement = self._construction, self._placement
        bystanders = sorted(vm for vm in placement.moved if vm not in construction.part_of)
        busy = {construction.problem.where[vm] for vm in bystanders}
        if self.value[1] > self.bound[1]:
            busy.update(crowded(placement))
        parts = [
            built.part.vms
            for built in construction.built
            if len(built.part.vms) <= _MOST_VMS
            and (
                construction.value_of(built.part) > built.bound
                or any(placement.moved.get(vm) in busy for vm in built.part.vms)
            )
        ]
        return [*parts, *((vm,) for vm in bystanders)]

    def _decide(
        self, seed: tuple[str, ...], size: int, deadline: Deadline, aims: Mapping[str, str] = NO_AIMS
    ) -> bool:
        construction, placement = self._construction, self._placement
        domains = Neighbourhood(construction, seed, size, aims).domains()
        before = self._merit
        work = _WORK * size * size
        solved = solve(placement, construction.candidates, domains, deadline, evenly=False, work=work)
        return solved is not None and self._put_if_better(solved.where, before)

    @property
    def _merit(self) -> tuple[Value, int]:
        return self.value, score(self._placement).memory_mb

    def _put_if_better(self, where: Mapping[str, str], before: tuple[Value, int]) -> bool:
        """Whether it was better by more than the memory that moves."""
        earlier = {vm: self._placement.where(vm) for vm in where}
        put(self._placement, where)
        if self._merit > before:
            put(self._placement, earlier)
        return self.value < before[0]
