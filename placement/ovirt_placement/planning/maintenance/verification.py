"""Holds a course of a maintenance against all rules, move by move, in the states that it leads through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.legality import vetoes
from ovirt_placement.planning.maintenance.course import Wave
from ovirt_placement.planning.maintenance.data import Round
from ovirt_placement.planning.maintenance.leaving import leaving
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.ordering.dependencies import waits
from ovirt_placement.planning.ordering.order import OrderedMove
from ovirt_placement.planning.ordering.schedule import ScheduleLimits, schedule
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.verification import Certified, certify, refusal
from ovirt_placement.rules.world import World


class Verified(NamedTuple):
    """Rounds that all rules let pass, the state after them, and what was refused in the next one."""

    rounds: tuple[Round, ...]
    end: Snapshot
    refused: frozenset[tuple[str, str]]


def verified(site: Site, waves: Sequence[Wave]) -> Verified:
    """The rounds of a course, as far as rules, capacity and the state of VMs and hosts let them be."""
    state = site.snapshot
    rounds: list[Round] = []
    for wave in waves:
        certified = certified_moves(site, state, wave.moves, wave.hosts)
        if certified.refused is not None:
            found = refusal(certified.end, site.cluster, certified.refused)
            return Verified(tuple(rounds), state, frozenset(found))
        after = _moved_by_engine(site, certified.end, wave)
        if isinstance(after, tuple):
            return Verified(tuple(rounds), state, frozenset({after}))
        back = frozenset(host for host in wave.hosts if site.returns(host))
        state = World(after).activated(back).snapshot
        rounds.append(_round(site, wave, certified.steps))
    return Verified(tuple(rounds), state, frozenset())


def certified_moves(site: Site, state: Snapshot, moves: Sequence[Move], emptied: Sequence[str]) -> Certified:
    """Moves as steps that go on at once as far as they may, each held against all rules."""
    options = PlanOptions(closed=site.never, constraints=tuple(leaving(state, emptied)))
    problem = pose(state, site.cluster, site.options.frozen, site.refused, options)
    ordered = map(OrderedMove, moves, waits(problem, moves))
    return certify(state, problem, tuple(ordered))


def _moved_by_engine(site: Site, state: Snapshot, wave: Wave) -> Snapshot | tuple[str, str]:
    """The state once the engine has moved its own VM; or the VM and the host, if a filter refuses it."""
    for vm, host in wave.by_engine:
        if next(vetoes(state, site.cluster, (vm,), host), None) is not None:
            return vm, host
        state = World(state).moved((vm,), host).snapshot
    return state


def _round(site: Site, wave: Wave, steps: tuple[Step, ...]) -> Round:
    return Round(
        hosts=wave.hosts,
        steps=steps,
        stopped=wave.stopped,
        by_engine=wave.by_engine,
        migrating_seconds=schedule(steps, ScheduleLimits()).makespan,
        maintenance_seconds=site.options.host_seconds,
    )
