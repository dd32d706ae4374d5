"""Makes plans in processes of their own: for the daemon, apart from its loop, and for a person who waits."""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final

import msgspec
from msgspec.structs import replace

from ovirt_enforcer.plans import Asked, Holding, repair_plan, strategy_name
from ovirt_enforcer.policy_simulation import simulate, simulation_text
from ovirt_enforcer.processes import GRACE_SECONDS, Call, in_process, with_snapshot
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.requests import Moved, plan_home
from ovirt_placement.planning.strategies import StrategyName

#: At the least this many plans are made at once; they share the CPUs, and more wait.
_LEAST_AT_ONCE: Final = 4
#: The share of the time for what rules ask, where VMs are to go back to their hosts besides.
_REPAIRING_SHARE: Final = 0.5
#: A first plan waits so long for a simulation.
_SIMULATION_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is asked of a planner, besides a snapshot."""

    cluster: str
    #: What is to be left alone.
    holding: Holding
    options: PlanOptions
    strategy: StrategyName
    #: In seconds, from when planning begins.
    deadline: float
    #: Whether it is tried out, too, if the plan would lead to a loop.
    simulate: bool = False
    #: What a strategy that draws lots casts its dice with; None: it draws.
    seed: int | None = None
    #: Whether others move VMs back and forth: then that is tried out even if there is nothing to do.
    restless: bool = False
    #: VMs that a maintenance run brings back, once there is nothing to repair; None where no run does.
    home: tuple[Moved, ...] | None = None


def plan_of(
    snapshot: Snapshot, question: PlanQuestion, simulation_seconds: float = _SIMULATION_SECONDS
) -> Plan:
    """Make a plan here and now; trying out what it leads to takes `simulation_seconds` at most."""
    deadline = Deadline.after(question.deadline)
    strategy = strategies.strategy(question.strategy, question.seed)
    rest = deadline if question.home is None else deadline.within(_REPAIRING_SHARE)
    plan = repair_plan(snapshot, question.cluster, question.holding, question.options, strategy, rest)
    if question.home is not None and not plan.steps:
        plan = plan_home(snapshot, question.cluster, question.home, question.holding.frozen, deadline)
    if question.simulate and (plan.steps or question.restless):
        plan = replace(plan, loop=_loop(snapshot, question, simulation_seconds))
    return plan


def _loop(snapshot: Snapshot, question: PlanQuestion, seconds: float) -> str:
    simulated = simulate(
        snapshot,
        question.cluster,
        question.holding.frozen,
        options=question.options,
        deadline=Deadline.after(seconds),
    )
    return simulation_text(simulated) if simulated.loop is not None else ""


class PlannerProcesses:
    """Make plans in processes; for one thread."""

    def __init__(self) -> None:
        self._at_once = max(_LEAST_AT_ONCE, os.cpu_count() or 1)
        self._waiting: deque[Call[Plan]] = deque()
        self._running: list[Call[Plan]] = []
        #: The snapshot that was encoded last: all clusters of a reading share it.
        self._encoded: tuple[Snapshot, bytes] | None = None

    def start(self, snapshot: Snapshot, question: PlanQuestion) -> Call[Plan]:
        """Begin to make a plan, as soon as there is room for it."""
        if self._encoded is None or self._encoded[0] is not snapshot:
            self._encoded = snapshot, msgspec.msgpack.encode(snapshot)
        seconds = question.deadline + GRACE_SECONDS
        planning = with_snapshot(plan_of, self._encoded[1], (question,), seconds)
        self._waiting.append(planning)
        self.answers()
        return planning

    def answers(self) -> list[Connection]:
        """What `multiprocessing.connection.wait` can wait for: one is ready once a plan is made.

        What waits begins as soon as there is room for it.
        """
        self._running = [planning for planning in self._running if planning.answer is not None]
        while self._waiting and len(self._running) < self._at_once:
            planning = self._waiting.popleft()
            if not planning.cancelled:
                planning.begin()
                self._running.append(planning)
        return [planning.answer for planning in self._running if planning.answer is not None]

    def close(self) -> None:
        """End all that is under way."""
        for planning in (*self._waiting, *self._running):
            planning.cancel()


def planned_in_process(found: Asked, cluster: str, seconds: float, staying: Mapping[str, str]) -> Plan:
    """The plan by the configured strategy, made in a process; VMs in `staying` stay, with the reasons.

    Raises `UserError`.
    """
    strategy = strategies.DEFAULT if found.settings is None else strategy_name(found.settings)
    holding = dataclasses.replace(found.holding, frozen={**found.holding.frozen, **staying})
    question = PlanQuestion(cluster, holding, found.options, strategy, seconds)
    return in_process(_planned, found.snapshot, question, seconds=seconds)


def _planned(snapshot: Snapshot, question: PlanQuestion, *, deadline: Deadline) -> Plan:
    return plan_of(snapshot, question)
