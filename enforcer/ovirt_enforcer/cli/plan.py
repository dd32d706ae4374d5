"""`ovirt-enforcer plan`, `simulate-policy`, `make-room`: what would be done, and of which state."""

import argparse
import re
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from ovirt_enforcer.plans import (
    Asked,
    RoomFound,
    failure_domains,
    planning_seconds,
    repair_plan,
    room_for,
    strategy_name,
)
from ovirt_enforcer.policy_actors import measured_by
from ovirt_enforcer.policy_simulation import SimulationOutcome, Simulations, simulate, simulation_text
from ovirt_enforcer.settings import EnforcerSettings, recorded_settings
from ovirt_placement import config as configuration
from ovirt_placement.answers.document import none_text
from ovirt_placement.answers.plans import Plans, plans_record
from ovirt_placement.answers.plans.text import steps_text
from ovirt_placement.answers.plans.text import text as plan_text
from ovirt_placement.answers.question import SOME_CLUSTERS, THE_VM, Parameter, Reads, question
from ovirt_placement.cli import questions
from ovirt_placement.cli.questions import PATIENCE_SECONDS, Reading, add_config, add_json
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Cluster, Snapshot, Vm, state_file
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.model.names import counted
from ovirt_placement.model.snapshot import HOST_STATISTICS, VM_STATISTICS
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.strategies import StrategyName
from ovirt_placement.rules.doubts import doubt
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_enforcer.history import KnownHistory

Word = TypeVar("Word", bound=StrEnum)
_DAY_SECONDS: Final = 24 * 3600.0
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_state(parser: argparse.ArgumentParser) -> None:
    questions.add_state(parser)
    parser.set_defaults(stale=False, timeout=questions.PATIENCE_SECONDS)


def add_return(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--return",
        dest="back",
        type=word_of(Return),
        choices=tuple(Return),
        default=Return.NONE,
        help="which VMs go back in the end: none (default), ruled (of satisfied soft rules), or all",
    )


def duration(given: str) -> float:
    """Read 90s, 15m, 2h or 7d; return seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", given)
    if match is None:
        raise argparse.ArgumentTypeError(f"{given!r} is no time such as 90s, 15m, 2h or 7d")
    return float(match[1]) * _UNIT_SECONDS[match[2]]


def _repair(given: str) -> frozenset[Repair]:
    try:
        return frozenset(Repair(word.strip()) for word in given.split(","))
    except ValueError:
        raise ValueError(f"{given!r} is neither hard nor soft nor partly, nor such as hard,soft") from None


REPAIR = Parameter(
    help="which rules are repaired (default: as configured, else hard)",
    metavar="hard,soft",
    argument={"type": _repair},
)


def deadline_parameter(text: str) -> Parameter:
    return Parameter(help=text, metavar="SECONDS", argument={"type": questions.seconds})


def word_of(words: type[Word]) -> Callable[[str], Word]:
    def read(given: str) -> Word:
        try:
            return words(given)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{given!r} is none of {', '.join(words)}") from None

    return read


#: Exit statuses, besides 0 where nothing is violated and 2 for a mistake.
REPAIRS_ALL = 3
REMAINS_VIOLATED = 4
#: How long planning may take, in seconds, by default: a little less than what is promised.
_SECONDS = {StrategyName.OPTIMAL: 27.0, StrategyName.GREEDY: 5.0, StrategyName.RANDOM: 5.0}


def _seed(given: str) -> int:
    if not (given.isascii() and given.isdigit()):
        raise ValueError(f"{given!r} is not a non-negative integer")
    return int(given)


@question(
    "plan",
    "show which migrations would repair violated rules, and why",
    """\
Show the migrations that would repair violated rules, in order, and why; migrate nothing.
Exit status: 0 no rule is violated, 3 the plan repairs all, 4 some rules remain violated.
""",
    examples="""\
  ovirt-enforcer plan --state cluster.json --repair hard,soft
  ovirt-enforcer plan --json > plan.json             # for ovirt-enforcer apply
""",
    text=lambda answer, _: map(plan_text, answer.clusters),
    status=lambda answer, shown: _plan_status(answer, shown.state),
    statuses=(0, REPAIRS_ALL, REMAINS_VIOLATED),
    options={"repair": REPAIR},
    reads=Reads.OWN,
    ansible="list the migrations that repair what is violated",
    command="ovirt-enforcer",
)
def plan(
    found: Asked,
    clusters: Annotated[Iterable[Cluster], SOME_CLUSTERS],
    *,
    strategy: Annotated[
        StrategyName | None,
        Parameter(
            help="default: as configured, else optimal if OR-Tools is installed, else greedy",
            argument={"type": word_of(StrategyName), "choices": tuple(StrategyName)},
        ),
    ] = None,
    seed: Annotated[
        int | None,
        Parameter(
            help="of the strategy random: repeat the plan with this seed",
            metavar="N",
            argument={"type": _seed},
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        deadline_parameter("the time limit (default: as configured, else 27 if optimal, 5 if not)"),
    ] = None,
) -> Plans:
    """The migrations that repair each of these clusters. Raises `UserError` for a seed that nothing takes."""
    if found.settings is None or strategy:
        name = strategy or strategies.DEFAULT
        seconds = deadline or _SECONDS[name]
    else:
        name, seconds = strategy_name(found.settings), deadline or planning_seconds(found.settings)
    if seed is not None and name is not StrategyName.RANDOM:
        raise UserError(f"--seed goes with the strategy random; {name} draws nothing")
    drawn = strategies.strategy(name, seed)
    until = time.monotonic() + seconds  # neither reading an engine nor loading a solver is planning
    ids = sorted(cluster.id for cluster in clusters)
    plans = [
        repair_plan(
            found.snapshot,
            cluster,
            found.holding,
            found.options,
            drawn,
            Deadline.after((until - time.monotonic()) / left),  # each may take its share of what is left
        )
        for cluster, left in zip(ids, range(len(ids), 0, -1), strict=True)
    ]
    return plans_record(plans, found.snapshot, found.not_now)


def _plan_status(answer: Plans, found: Asked) -> int:
    """What was not asked to be repaired counts for nothing; what is not known yet is not repaired."""
    halves = ((True, Repair.HARD), (False, Repair.SOFT))
    wanted = {hard for hard, repair in halves if repair in found.options.repair}
    if any(
        doubt(found.snapshot, plan.cluster.id)
        or any(rule.hard in wanted for rule in plan.remaining)
        or (plan.reservation is not None and plan.reservation.lost)
        for plan in answer.clusters
    ):
        return REMAINS_VIOLATED
    return REPAIRS_ALL if any(one.steps for one in answer.clusters) else 0


#: Exit statuses, besides 0 where all clusters settle and 2 for a mistake.
LOOP = 3
NOT_SETTLED = 4
_SIMULATION_SECONDS = 60.0


@question(
    "simulate-policy",
    "simulate rules, scheduling policy and enforcer together, and find loops",
    """\
Simulate enforcer, engine and scheduling policy until no VM moves any more. See
docs/enforcer/simulate-policy.md.
Exit status: 0 all clusters settle, 3 there is a loop, 4 undecided.
""",
    examples="""\
  ovirt-enforcer simulate-policy --cluster blue
""",
    text=lambda answer, _: map(simulation_text, answer.clusters),
    status=lambda answer, _: _simulation_status(answer),
    statuses=(0, LOOP, NOT_SETTLED),
    options={"repair": REPAIR},
    reads=Reads.OWN,
    command="ovirt-enforcer",
)
def simulate_policy(
    found: Asked,
    clusters: Annotated[Iterable[Cluster], SOME_CLUSTERS],
    *,
    deadline: Annotated[
        float | None,
        deadline_parameter(f"the time limit for each cluster (default: {_SIMULATION_SECONDS:g})"),
    ] = None,
) -> Simulations:
    """What all who migrate VMs of these clusters make of them."""
    simulated = (
        simulate(
            found.snapshot,
            cluster.id,
            found.holding.frozen,
            options=found.options,
            deadline=Deadline.after(deadline or _SIMULATION_SECONDS),
        )
        for cluster in clusters
    )
    return Simulations(format=1, clusters=tuple(simulated))


def _simulation_status(answer: Simulations) -> int:
    outcomes = {one.outcome for one in answer.clusters}
    if SimulationOutcome.LOOP in outcomes:
        return LOOP
    return NOT_SETTLED if SimulationOutcome.UNSETTLED in outcomes else 0


#: Exit statuses, besides 0 where the VM can start as things are and 2 for a mistake.
TAKES_MIGRATIONS = 3
FITS_NOWHERE = 4
_ROOM_SECONDS = 30.0


@question(
    "make-room",
    "show which migrations let a VM start that fits nowhere",
    """\
Show which migrations let a VM start that no host accepts now; migrate nothing.
Exit status: 0 it can start now, 3 after these migrations, 4 no way was found.
""",
    examples="""\
  ovirt-enforcer make-room db1
""",
    text=lambda answer, _: _room_lines(answer),
    status=lambda answer, _: _room_status(answer),
    statuses=(0, TAKES_MIGRATIONS, FITS_NOWHERE),
    reads=Reads.OWN,
    command="ovirt-enforcer",
)
def make_room(snapshot: Snapshot, vm: Annotated[Vm, THE_VM]) -> RoomFound:
    """The fewest migrations found that let a VM start. Raises `UserError` of a VM that runs or starts."""
    return room_for(snapshot, vm, deadline=Deadline.after(_ROOM_SECONDS))


def _room_status(found: RoomFound) -> int:
    if found.host is None:
        return FITS_NOWHERE
    return TAKES_MIGRATIONS if found.plan.steps else 0


def _room_lines(found: RoomFound) -> list[str]:
    name, plan = found.vm.name, found.plan
    if found.host is None:
        refusals = (f"  {one.host.name}: {'; '.join(one.reasons)}" for one in found.because)
        found_none = f"no migrations were found that let VM {name} start"
        none = none_text(plan.proven, f"migrations let VM {name} start", found_none)
        return [f"{none[0].upper()}{none[1:]}{':' if found.because else '.'}", *refusals]
    if not plan.steps:
        return [f"VM {name} can start on host {found.host.name} as things are."]
    count = plan.migrations
    known = none_text(plan.proven, "fewer will do", f"at least {plan.at_least} are needed")
    after = f"after {counted(count, 'migration')}, {known}:"
    return [f"VM {name} can start on host {found.host.name} {after}", *steps_text(plan.steps)]


def asked(args: argparse.Namespace) -> Asked:
    """By the rules and capacity alone with `--state`; else by the configuration, and what is held back now.

    With `--config` besides, reservations of a state file are restored where that says so. Raises `UserError`.
    """
    if args.state is not None:
        options = PlanOptions(repair=args.repair) if args.repair else PlanOptions()
        snapshot = state_file.load(args.state)
        if args.config is not None:
            config = configuration.load(args.config)
            domains = failure_domains(config.ha, snapshot)
            reserve = config.section("enforcer", EnforcerSettings).ha.repair and domains is not None
            options = replace(options, reserve=reserve, domains=domains or ())
        return Asked(snapshot, options)
    # The SDK and SQLAlchemy take long to load: not for a state file.
    from ovirt_enforcer.memory import read_engine_state

    found = read_engine_state(configuration.load(args.config), PATIENCE_SECONDS)
    return replace(found, options=replace(found.options, repair=args.repair)) if args.repair else found


def _asked_measured(args: argparse.Namespace, _: Measured) -> Asked:
    """With the CPU use by which the engine's own balance goes, where it takes part."""
    found = asked(args)
    if args.state is not None or not any(map(measured_by, found.snapshot.clusters)):
        return found
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.topology import read_statistics

    with EngineConnection(configuration.load(args.config).engine) as connection:
        read = read_statistics(connection, frozenset({HOST_STATISTICS, VM_STATISTICS}))
    return replace(found, snapshot=read.over(found.snapshot))


def _add_reading(parser: argparse.ArgumentParser, *, of_file: bool = True) -> None:
    if of_file:
        add_state(parser)
    add_config(parser)
    add_json(parser)
    parser.set_defaults(all=True)


def _read_known(args: argparse.Namespace, _: Measured) -> "KnownHistory":
    # They take long to load: not for other questions.
    from ovirt_enforcer.history import KnownHistory
    from ovirt_enforcer.memory import Stores, read_engine_state
    from ovirt_placement.answers.status import not_led
    from ovirt_placement.store.enforcer.leader import differences

    config = configuration.load(args.config)
    found = read_engine_state(config, PATIENCE_SECONDS)
    with closing(Stores(config, create=False)) as stores:
        there = stores.settings.leader_settings()
        other: tuple[str, ...] = ()
        if found.settings is not None and there is not None:
            other = differences(there, "here", recorded_settings(found.settings))
        return KnownHistory(
            snapshot=found.snapshot,
            frozen=found.holding.frozen,
            held_groups=found.holding.spared,
            plans=stores.history.plans(since_seconds=_DAY_SECONDS),
            under_way=stores.intents.open_intents(),
            ended=stores.intents.history(within_seconds=_DAY_SECONDS),
            not_led=not_led(config),
            other_settings=other,
        )


#: How each question is read for its command.
READINGS: Final = {
    "plan": Reading(lambda args, _: asked(args), _add_reading),
    "simulate-policy": Reading(_asked_measured, _add_reading),
    "make-room": Reading(questions.read_measured, _add_reading),
    "why-not": Reading(_read_known, partial(_add_reading, of_file=False)),
}
