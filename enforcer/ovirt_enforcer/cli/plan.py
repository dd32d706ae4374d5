"""`ovirt-enforcer plan`, `make-room` and `simulate-policy`: what would be done, and what it leads to."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

from ovirt_enforcer.cli.arguments import add_deadline, add_repair, add_state, asked, word_of
from ovirt_enforcer.plans import RoomFound, planning_seconds, repair_plan, room_for, strategy_name
from ovirt_enforcer.policy_simulation.simulation import SimulationOutcome, Simulations, simulate
from ovirt_enforcer.policy_simulation.simulation import text as simulation_text
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.document import find, none_text
from ovirt_placement.answers.plans.plan import plans_record
from ovirt_placement.answers.plans.text import steps_text
from ovirt_placement.answers.plans.text import text as plan_text
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.asking import add_cluster, clusters_of, read_state, show_json
from ovirt_placement.model import Snapshot
from ovirt_placement.model.amounts import counted
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.problem.build_problem import Repair
from ovirt_placement.rules.doubts import doubt
from ovirt_service.errors import UserError

#: Exit statuses, besides 0 where nothing is violated and 2 for a mistake.
REPAIRS_ALL = 3
REMAINS_VIOLATED = 4
#: How long planning may take, in seconds, by default: a little less than what is promised.
_SECONDS = {StrategyName.OPTIMAL: 27.0, StrategyName.GREEDY: 5.0, StrategyName.RANDOM: 5.0}
PLAN = """\
Show the migrations that would repair violated rules, in order, and why; migrate nothing.
Exit status: 0 no rule is violated, 3 the plan repairs all, 4 some rules remain violated.
"""
PLAN_EXAMPLES = """\
  ovirt-enforcer plan --state cluster.json --repair hard,soft
  ovirt-enforcer plan --json > plan.json             # for ovirt-enforcer apply
"""


def add_plan(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "plan", summary, PLAN, _run_plan, PLAN_EXAMPLES)
    add_config(parser)
    add_state(parser)
    add_json(parser)
    add_cluster(parser)
    parser.add_argument(
        "--strategy",
        type=word_of(StrategyName),
        choices=tuple(StrategyName),
        help="default: as configured, else optimal if OR-Tools is installed, else greedy",
    )
    parser.add_argument(
        "--seed", type=_seed, metavar="N", help="of the strategy random: repeat the plan with this seed"
    )
    add_repair(parser)
    add_deadline(parser, "the time limit (default: as configured, else 27 if optimal, 5 if not)")


def _run_plan(args: argparse.Namespace) -> int:
    found = asked(args)
    name, seconds = _how(args, found.settings)
    if args.seed is not None and name is not StrategyName.RANDOM:
        raise UserError(f"--seed goes with the strategy random; {name} draws nothing")
    strategy = catalogue.strategy(name, args.seed)
    began = time.monotonic()  # neither reading an engine nor loading a solver is planning
    clusters = sorted(cluster.id for cluster in clusters_of(args, found.snapshot))
    plans = [
        repair_plan(
            found.snapshot, cluster, found.holding, found.options, strategy, _share(began + seconds, left)
        )
        for cluster, left in zip(clusters, range(len(clusters), 0, -1), strict=True)
    ]
    answer = plans_record(plans, found.snapshot, found.not_now)
    if args.json:
        show_json(answer)
    else:
        print("\n".join(map(plan_text, answer.clusters)))
    return _plan_status(plans, found.options.repair, found.snapshot)


def _seed(given: str) -> int:
    if not (given.isascii() and given.isdigit()):
        raise argparse.ArgumentTypeError(f"{given!r} is not a non-negative integer")
    return int(given)


def _how(args: argparse.Namespace, settings: EnforcerSettings | None) -> tuple[StrategyName, float]:
    """How to plan, and for how long: what is given on the command line comes before the configuration."""
    if settings is None or args.strategy:
        name = args.strategy or catalogue.DEFAULT
        return name, args.deadline or _SECONDS[name]
    return strategy_name(settings), args.deadline or planning_seconds(settings)


def _share(until: float, clusters: int) -> Deadline:
    """What each of this many clusters that are left may take of the time that is left."""
    return Deadline.after((until - time.monotonic()) / clusters)


def _plan_status(plans: Iterable[Plan], repair: frozenset[Repair], snapshot: Snapshot) -> int:
    """What was not asked to be repaired counts for nothing; what is not known yet is not repaired."""
    plans = list(plans)
    if any(doubt(snapshot, plan.cluster) for plan in plans):
        return REMAINS_VIOLATED
    wanted = {hard for hard in (True, False) if (Repair.HARD if hard else Repair.SOFT) in repair}
    if any(rule.hard in wanted for plan in plans for rule in plan.remaining):
        return REMAINS_VIOLATED
    if any(plan.reservation is not None and plan.reservation.lost for plan in plans):
        return REMAINS_VIOLATED
    return REPAIRS_ALL if any(plan.steps for plan in plans) else 0


#: Exit statuses, besides 0 where all clusters settle and 2 for a mistake.
LOOP = 3
NOT_SETTLED = 4
_SIMULATION_SECONDS = 60.0
SIMULATE = """\
Simulate enforcer, engine and scheduling policy until no VM moves any more. See
docs/enforcer/simulate-policy.md.
Exit status: 0 all clusters settle, 3 there is a loop, 4 undecided.
"""
SIMULATE_EXAMPLES = """\
  ovirt-enforcer simulate-policy --cluster blue
"""


def add_simulate_policy(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        commands, "simulate-policy", summary, SIMULATE, _run_simulate_policy, SIMULATE_EXAMPLES
    )
    add_config(parser)
    add_state(parser)
    add_cluster(parser)
    add_json(parser)
    add_repair(parser)
    add_deadline(parser, f"the time limit for each cluster (default: {_SIMULATION_SECONDS:g})")


def _run_simulate_policy(args: argparse.Namespace) -> int:
    found = asked(args)
    simulations = [
        simulate(
            found.snapshot,
            cluster.id,
            found.holding.frozen,
            options=found.options,
            deadline=Deadline.after(args.deadline or _SIMULATION_SECONDS),
        )
        for cluster in clusters_of(args, found.snapshot)
    ]
    if args.json:
        show_json(Simulations(format=1, clusters=tuple(simulations)))
    else:
        print("\n".join(simulation_text(one) for one in simulations))
    outcomes = {one.outcome for one in simulations}
    if SimulationOutcome.LOOP in outcomes:
        return LOOP
    return NOT_SETTLED if SimulationOutcome.UNSETTLED in outcomes else 0


#: Exit statuses, besides 0 where the VM can start as things are and 2 for a mistake.
TAKES_MIGRATIONS = 3
FITS_NOWHERE = 4
#: How long planning may take.
_ROOM_SECONDS = 30.0
MAKE_ROOM = """\
Show which migrations let a VM start that no host accepts now; migrate nothing.
Exit status: 0 it can start now, 3 after these migrations, 4 no way was found.
"""
MAKE_ROOM_EXAMPLES = """\
  ovirt-enforcer make-room db1
"""


def add_make_room(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "make-room", summary, MAKE_ROOM, _run_make_room, MAKE_ROOM_EXAMPLES)
    parser.add_argument("vm", metavar="VM", help="its name or id")
    add_config(parser)
    add_state(parser)
    add_json(parser)


def _run_make_room(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    found = room_for(
        snapshot, find(args.vm, "VM", snapshot.vms, snapshot), deadline=Deadline.after(_ROOM_SECONDS)
    )
    if args.json:
        show_json(found)
    else:
        print("\n".join(_room_lines(found)))
    if found.host is None:
        return FITS_NOWHERE
    return TAKES_MIGRATIONS if found.plan.steps else 0


def _room_lines(found: RoomFound) -> list[str]:
    name, plan = found.vm.name, found.plan
    if found.host is None:
        refusals = (f"  {one.host.name}: {'; '.join(one.reasons)}" for one in found.because)
        found_none = f"no migrations were found that let VM {name} start"
        none = none_text(plan.proven, f"migrations let VM {name} start", found_none)
        return [f"{none[0].upper()}{none[1:]}:", *refusals]
    if not plan.steps:
        return [f"VM {name} can start on host {found.host.name} as things are."]
    count = plan.migrations
    known = none_text(plan.proven, "fewer will do", f"at least {plan.at_least} are needed")
    after = f"after {counted(count, 'migration')}, {known}:"
    return [f"VM {name} can start on host {found.host.name} {after}", *steps_text(plan.steps)]
