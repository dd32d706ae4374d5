"""The best of several courses of a maintenance: they differ in which hosts come first."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.bounds import migrations_at_least, rounds_at_least
from ovirt_placement.planning.maintenance.course import Course, Outcome
from ovirt_placement.planning.maintenance.exact import exact_course
from ovirt_placement.planning.maintenance.reserve import Reserve
from ovirt_placement.planning.maintenance.site import Site

#: This many hosts are tried as the first one, and then orders that are drawn by lot.
_MOST_LEADS = 10
_MOST_DRAWN = 20
#: The share of the time for them; the rest is for a search through all, where there is little to go through.
_COURSES_SHARE = 0.7
_Beginning = tuple[Sequence[str], tuple[str, ...]]


def best_course(site: Site, reserve: Reserve, deadline: Deadline) -> Outcome:
    """What leaves the fewest hosts, then has the fewest rounds, then the fewest migrations.

    The first that meets all bounds ends it.
    """
    rounds = rounds_at_least(site, reserve)
    best = _by_courses(site, reserve, rounds, deadline.within(_COURSES_SHARE))
    if meets_bounds(site, best, rounds):
        return replace(best, proven=not site.problem.guessed)
    return exact_course(site, reserve, best, deadline) or best


def _by_courses(site: Site, reserve: Reserve, rounds: int, deadline: Deadline) -> Outcome:
    beginnings = _beginnings(site)
    best = Course(site, reserve, *next(beginnings), rounds).run()
    for order, lead in beginnings:
        if deadline.over or meets_bounds(site, best, rounds):
            break
        for target in sorted({rounds, len(best.waves)}):
            outcome = Course(site, reserve, order, lead, target, deadline).run()
            best = min(best, outcome, key=lambda one: one.merit)
    return best


def meets_bounds(site: Site, outcome: Outcome, rounds: int) -> bool:
    """Whether no course can be better."""
    if outcome.blocked or len(outcome.waves) > rounds:
        return False
    return outcome.migrations <= migrations_at_least(site, rounds)


def _beginnings(site: Site) -> Iterator[_Beginning]:
    """Orders of hosts, each with those that the first wave begins with."""
    by_number = sorted(site.asked, key=lambda host: (len(site.on(host)), host))
    yield by_number, ()
    yield by_number[::-1], ()
    for host in by_number[:_MOST_LEADS]:
        yield by_number, (host,)
    chance = random.Random(len(by_number))  # noqa: S311 - plans are to be the same each time
    for _ in range(_MOST_DRAWN):
        order = list(by_number)
        chance.shuffle(order)
        yield order, tuple(order)
