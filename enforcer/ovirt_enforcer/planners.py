"""Makes plans in processes of their own: for the daemon, apart from its loop, and for a person who waits.

Not in a thread, since what searches in Python holds the interpreter's lock; and a process can be ended at any
moment. It is forked from a server that has one thread and has loaded what is needed (multiprocessing's
forkserver): a fork of the daemon itself would take along locks that its other threads hold.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess, parent_process
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from ovirt_enforcer.plans import Asked, Holding, repair_plan, strategy_name
from ovirt_enforcer.policy_simulation import simulate, simulation_text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.requests import Moved, plan_home
from ovirt_placement.planning.strategies import StrategyName
from ovirt_service.errors import UserError

#: At the least this many plans are made at once; they share the CPUs, and more wait.
_LEAST_AT_ONCE: Final = 4
#: The share of the time for what rules ask, where VMs are to go back to their hosts besides.
_REPAIRING_SHARE: Final = 0.5
#: A first plan waits so long for a simulation.
_SIMULATION_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    cluster: str
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
        frozen, domains = question.holding.frozen, question.options.domains
        plan = plan_home(snapshot, question.cluster, question.home, frozen, deadline, domains)
    if question.simulate and (plan.steps or question.restless):
        simulated = simulate(
            snapshot,
            question.cluster,
            question.holding.frozen,
            options=question.options,
            deadline=Deadline.after(simulation_seconds),
        )
        if simulated.loop is not None:
            plan = replace(plan, loop=simulation_text(simulated))
    return plan


class PlannerProcesses:
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
        planning = Call(plan_of, self._encoded[1], (question,), seconds)
        self._waiting.append(planning)
        self.answers()
        return planning

    def answers(self) -> list[Connection]:
        """What `multiprocessing.connection.wait` can wait for; what waits begins if there is room."""
        self._running = [planning for planning in self._running if planning.answer is not None]
        while self._waiting and len(self._running) < self._at_once:
            planning = self._waiting.popleft()
            if not planning.cancelled:
                planning.begin()
                self._running.append(planning)
        return [planning.answer for planning in self._running if planning.answer is not None]

    def close(self) -> None:
        for planning in (*self._waiting, *self._running):
            planning.cancel()


def planned_in_process(found: Asked, cluster: str, seconds: float, staying: Mapping[str, str]) -> Plan:
    """The plan by the configured strategy; VMs in `staying` stay, with the reasons. Raises `UserError`."""
    strategy = strategies.strategy(None if found.settings is None else strategy_name(found.settings))
    holding = dataclasses.replace(found.holding, frozen={**found.holding.frozen, **staying})
    asked = cluster, holding, found.options, strategy
    return in_process(repair_plan, found.snapshot, *asked, seconds=seconds)


#: Policy units decide on the same machine within milliseconds: background work gives way.
_NICENESS: Final = 10
#: A process that goes on for so much longer than its deadline hangs, and is ended.
GRACE_SECONDS: Final = 15.0

_processes = multiprocessing.get_context("forkserver")

Result = TypeVar("Result")


class CallFailed(Exception):
    """A call did not come to its end; the text says why."""


def preload(*modules: str) -> None:
    """Have these modules loaded once for all processes, where none was started before."""
    _processes.set_forkserver_preload(["__main__", *modules])


class Call(Generic[Result]):
    """A call of a function with a snapshot and more arguments, made by a process; for one thread."""

    def __init__(
        self, function: Callable[..., Result], snapshot: bytes, arguments: tuple[Any, ...], seconds: float
    ) -> None:
        """The snapshot goes along encoded by msgpack, the others pickled. After `seconds` it is ended."""
        self._asked = function, snapshot, arguments
        self._seconds = seconds
        self._until = math.inf
        #: Ready to be read once the call is over; None before it has begun, and once its result was taken.
        self.answer: Connection | None = None
        self._process: BaseProcess | None = None
        self._failed: CallFailed | None = None
        self.cancelled = False

    def begin(self) -> None:
        """Start the process; `result` says if that fails."""
        self._until = time.monotonic() + self._seconds
        try:
            self.answer, theirs = _processes.Pipe(duplex=False)
            with theirs:
                process = _processes.Process(target=_work, args=(theirs, *self._asked), daemon=True)
                process.start()
        except OSError as error:  # no descriptor, process or memory is left
            self.cancel()
            self._failed = CallFailed(f"its process cannot be started: {error}")
        else:
            self._process = process

    def over(self, wait_seconds: float = 0.0) -> bool:
        """Whether `result` has something to return or to raise, by then."""
        if self.answer is None:
            return self._failed is not None
        left = self._until - time.monotonic()
        return self.answer.poll(max(0.0, min(wait_seconds, left))) or time.monotonic() >= self._until

    def result(self) -> Result:
        """What the function returned, once the call is over. Raises `CallFailed`, or its `UserError`."""
        if self._failed is not None:
            raise self._failed
        if self.answer is None or not self.answer.poll():
            self.cancel()
            raise CallFailed(f"no answer within {self._seconds:.0f} s: the process was ended")
        try:
            made: Any = self.answer.recv()
        except EOFError:
            made = CallFailed("the process has ended without an answer")
        self.cancel()
        if isinstance(made, CallFailed | UserError):
            raise made
        result: Result = made
        return result

    def cancel(self) -> None:
        """End the process, if there still is one; one that has not begun shall not any more."""
        self.cancelled = True
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
        if self.answer is not None:
            self.answer.close()
            self.answer = None


def in_process(
    function: Callable[..., Result], snapshot: Snapshot, *arguments: Any, seconds: float, **keywords: Any
) -> Result:
    """What a function makes of a snapshot for a person who waits for it: no one else does.

    It is also given the deadline that is over after `seconds`. Raises `UserError`.
    """
    asked = function, arguments, keywords, seconds
    call: Call[Result] = Call(_within, msgspec.msgpack.encode(snapshot), asked, seconds + GRACE_SECONDS)
    try:
        call.begin()
        call.over(math.inf)
        return call.result()
    except CallFailed as error:
        raise UserError(f"no plan was made: {error}") from None
    finally:
        call.cancel()


def _within(
    snapshot: Snapshot,
    function: Callable[..., Result],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    seconds: float,
) -> Result:
    return function(snapshot, *arguments, **keywords, deadline=Deadline.after(seconds))


def _work(
    answer: Connection, function: Callable[..., Any], snapshot: bytes, arguments: tuple[Any, ...]
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: it is for the daemon to hear
    os.nice(_NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answer.send(function(msgspec.msgpack.decode(snapshot, type=Snapshot), *arguments))
    except UserError as error:
        answer.send(error)
    except Exception as error:  # whatever it is, the daemon must learn of it
        failed = CallFailed(f"{type(error).__name__}: {error}")
        failed.add_note(traceback.format_exc())
        answer.send(failed)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
