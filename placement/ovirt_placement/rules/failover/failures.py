"""Judges every set of hosts that may fail together, the small ones first, by whatever measure.

A set that contains one that is lost is not looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import comb
from typing import Protocol

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.outcomes import Loss, Outcome, Proven, Survival, Unknown
from ovirt_placement.rules.solving.budget import Budget, BudgetSpentError


class Measure(Protocol):
    """What a failure is judged by."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that may fail."""
        ...

    @property
    def separable(self) -> bool:
        """Whether starts on different hosts have nothing to do with each other, but for affinity."""
        ...

    def vms_on(self, failed: tuple[str, ...]) -> tuple[str, ...]:
        """The VMs that would restart."""
        ...

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        """Judge one failure. Raises `BudgetSpentError`."""
        ...


def judge_failures(snapshot: Snapshot, measure: Measure, failures: int, steps: int) -> Proven:
    """Judge every set of at most so many hosts; what the steps leave open is counted, never guessed."""
    found = _Findings()
    budget = Budget(steps)
    unsettled = _unsettled(snapshot) if measure.separable else frozenset(measure.hosts)
    unjudged = sum(comb(len(measure.hosts), size) for size in range(1, failures + 1))
    try:
        for failed in _sets(measure.hosts, failures):
            budget.spend(1 + len(measure.vms_on(failed)))
            if not found.contains_loss(failed):
                apart = _survived_apart(failed, found.single, unsettled)
                found.add(failed, apart or measure.judge(failed, budget))
            unjudged -= 1
    except BudgetSpentError:
        pass
    return found.proven(unjudged)


class _Findings:
    """What has been found so far."""

    def __init__(self) -> None:
        self.single: dict[str, Survival] = {}
        self._losses: list[Loss] = []
        self._unknown: list[Unknown] = []
        self._survived = 0
        self._lost: set[tuple[str, ...]] = set()

    def contains_loss(self, failed: tuple[str, ...]) -> bool:
        """Whether a smaller set, or the set itself, is lost already."""
        sizes = range(1, len(failed) + 1)
        return any(smaller in self._lost for size in sizes for smaller in combinations(failed, size))

    def add(self, failed: tuple[str, ...], outcome: Outcome) -> None:
        if isinstance(outcome, Loss):
            self._losses.append(outcome)
            self._lost.add(failed)
        elif isinstance(outcome, Unknown):
            self._unknown.append(outcome)
        else:
            self._survived += 1
            if len(failed) == 1:
                self.single[failed[0]] = outcome

    def proven(self, unjudged: int) -> Proven:
        return Proven(
            safe=False if self._losses else None if self._unknown or unjudged else True,
            losses=tuple(self._losses),
            unknown=tuple(self._unknown),
            survived=self._survived,
            unjudged=unjudged,
            survivals=tuple(self.single.values()),
        )


def _sets(hosts: tuple[str, ...], failures: int) -> Iterator[tuple[str, ...]]:
    """Sets of failing hosts. One without highly available VMs matters with others: it is a home."""
    for size in range(1, failures + 1):
        yield from combinations(hosts, size)


def _unsettled(snapshot: Snapshot) -> frozenset[str]:
    """Hosts that VMs are on their way from or to."""
    found: set[str | None] = set()
    for vm, targets in snapshot.pending_hosts.items():
        known = snapshot.vm_by_id.get(vm)
        found.update(targets)
        found.add(None if known is None else known.host)
    return frozenset(host for host in found if host is not None)


def _survived_apart(
    failed: tuple[str, ...], single: Mapping[str, Survival], unsettled: frozenset[str]
) -> Survival | None:
    """A survival put together from those of each host alone, if they do not get in each other's way.

    They do not if each has homes off the other failing hosts, no two use the same home, and nothing is on
    its way from or to a failing host. Affinity does not matter then: what gathers a VM at its home
    survives, since the home does; failing hosts hold no negative peers any more; and VMs on different
    homes are apart.
    """
    if len(failed) == 1 or not all(host in single for host in failed) or not unsettled.isdisjoint(failed):
        return None
    alone = [single[host].homes for host in failed]
    used = [set(homes.values()) for homes in alone]
    distinct = len(set().union(*used)) == sum(map(len, used))
    if not distinct or any(not homes.isdisjoint(failed) for homes in used):
        return None
    return Survival(failed, {vm: home for homes in alone for vm, home in homes.items()})
