"""What a search is after: the groups to mend, how far a standing is from that, and what cannot be had."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ovirt_enforcer.planning.posed import Group, Problem
from ovirt_enforcer.planning.standing import Standing


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """How much is wrong; less is better. Of a group that spreads, each member that stands right helps."""

    broken: int
    surplus: int


@dataclass(frozen=True)
class Goal:
    """The groups to mend, and what can be said of them without a search."""

    problem: Problem
    groups: tuple[Group, ...]

    def score(self, standing: Standing) -> Score:
        return Score(
            sum(standing.broken(group) for group in self.groups),
            sum(standing.surplus(group) for group in self.groups if not group.gathers),
        )

    def best_conceivable(self, standing: Standing) -> Score:
        """A score that no sequence of moves from here can better."""
        fewest = [self.problem.least_surplus[group] for group in self.groups if not group.gathers]
        lost = sum(group.gathers and self.hopeless(group, standing) for group in self.groups)
        return Score(lost + sum(surplus > 0 for surplus in fewest), sum(fewest))

    def hopeless(self, group: Group, standing: Standing) -> bool:
        """Whether a positive group stays split: no host may take it all, or two members must not meet."""
        return standing.broken(group) and (
            not self.problem.gathering_hosts[group]
            or any(
                standing.where(rival) != standing.where(vm)
                for vm in group.vms
                for rival in self.problem.rivals[vm] & group.vms
            )
        )

    def needs(self, standing: Standing, known: Sequence[int] = (), moved: Iterable[str] = ()) -> list[int]:
        """Of each group, a lower bound of the migrations that mend it as far as it can be.

        `known` are the needs before the VMs in `moved` migrated; only what those change is computed again.
        """
        if not known:
            return [self._need(group, standing) for group in self.groups]
        needs = list(known)
        for number in {number for vm in moved for number in self._groups_of[vm]}:
            needs[number] = self._need(self.groups[number], standing)
        return needs

    def migrations_needed(self, needs: Sequence[int]) -> int:
        """A lower bound of all migrations: the needs of groups that share no VM add up."""
        total = 0
        counted: set[str] = set()
        overlapping = []
        for number, need in enumerate(needs):
            if need and self._alone[number]:
                total += need
            elif need:
                overlapping.append((-need, number))
        for negative_need, number in sorted(overlapping):
            if counted.isdisjoint(self.groups[number].vms):
                counted |= self.groups[number].vms
                total -= negative_need
        return total

    def members(self, standing: Standing) -> set[str]:
        """VMs of the groups that are broken."""
        return {vm for group in self.groups if standing.broken(group) for vm in group.vms}

    def missing_mb(self, standing: Standing) -> int:
        """MiB that are missing on the hosts that are nearest to taking the broken positive groups whole."""
        return sum(
            min(self.missing_mb_on(host, group, standing) for host in self.problem.gathering_hosts[group])
            for group in self.groups
            if group.gathers and standing.broken(group) and not self.hopeless(group, standing)
        )

    def missing_mb_on(self, host: str, group: Group, standing: Standing) -> int:
        """MiB that are missing on a host for the members of a group that are not there yet."""
        away = (self.problem.memory_mb[vm] for vm in group.vms if standing.where(vm) != host)
        return max(0, sum(away) - standing.free_mb(host))

    @cached_property
    def _groups_of(self) -> defaultdict[str, list[int]]:
        numbers = defaultdict(list)
        for number, group in enumerate(self.groups):
            for vm in group.vms:
                numbers[vm].append(number)
        return numbers

    @cached_property
    def _alone(self) -> list[bool]:
        return [all(len(self._groups_of[vm]) == 1 for vm in group.vms) for group in self.groups]

    def _need(self, group: Group, standing: Standing) -> int:
        if not group.gathers:
            return max(0, standing.surplus(group) - self.problem.least_surplus[group])
        if not standing.broken(group) or self.hopeless(group, standing):
            return 0
        crowds = Counter(standing.where(vm) for vm in group.vms)
        return len(group.vms) - max(crowds[host] for host in self.problem.gathering_hosts[group])
