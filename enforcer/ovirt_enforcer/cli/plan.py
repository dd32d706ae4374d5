"""`ovirt-enforcer plan`: which migrations would repair what is broken, and why."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec

from ovirt_enforcer import configured
from ovirt_enforcer.cli.arguments import add_config, add_deadline, add_json, add_repair, add_state
from ovirt_enforcer.cli.current_gates import current_gates
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.planning import report
from ovirt_placement.planning.choosing import catalogue
from ovirt_placement.planning.choosing.catalogue import StrategyName
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.posing import Repair, Wishes

#: Exit statuses, beside 0 where nothing is broken and 2 for a mistake.
MENDS_ALL = 3
STAYS_BROKEN = 4

#: How long planning may take, in seconds, where nobody says: a little less than what is promised.
_SECONDS = {StrategyName.OPTIMAL: 27.0, StrategyName.GREEDY: 5.0, StrategyName.RANDOM: 5.0}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plan",
        help="say which migrations would repair what is broken, and why",
        epilog="Exit status: 0 nothing is broken, 3 the plan mends all, 4 something stays broken.",
    )
    add_config(parser)
    add_state(parser)
    add_json(parser)
    parser.add_argument(
        "--strategy",
        type=StrategyName,
        choices=tuple(StrategyName),
        help="how to plan (default: as configured, else optimal where OR-Tools is installed, else greedy)",
    )
    add_repair(parser)
    add_deadline(parser, "how long planning may take (default: as configured, else 27 if optimal, 5 if not)")
    parser.set_defaults(run=run)


class _Asked(NamedTuple):
    """What to plan for, and how."""

    snapshot: Snapshot
    held: Mapping[str, str]
    wishes: Wishes
    strategy: StrategyName
    seconds: float


def run(args: argparse.Namespace) -> int:
    began = time.monotonic()
    asked = _of_state(args) if args.state is not None else _of_engine(args)
    until = began + asked.seconds
    snapshot = asked.snapshot
    clusters = sorted(snapshot.cluster_by_id)
    plans = [
        make_plan(
            snapshot,
            cluster,
            asked.held,
            wishes=asked.wishes,
            strategy=catalogue.strategy(asked.strategy),
            deadline=_share(until, left),
        )
        for cluster, left in zip(clusters, range(len(clusters), 0, -1), strict=True)
    ]
    if args.json:
        document = report.document(plans, snapshot)
        print(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        print("\n".join(report.text(plan, snapshot) for plan in plans))
    return _status(plans, asked.wishes.repair)


def _of_state(args: argparse.Namespace) -> _Asked:
    """Rules and capacity alone: no gate, and no headroom."""
    name = args.strategy or catalogue.DEFAULT
    wishes = Wishes(repair=args.repair) if args.repair else Wishes()
    return _Asked(state_file.load(args.state), {}, wishes, name, args.deadline or _SECONDS[name])


def _of_engine(args: argparse.Namespace) -> _Asked:
    """As the daemon would plan now; what is given on the command line comes before the configuration."""
    config = configuration.load(args.config)
    settings = config.section("enforcer", EnforcerSettings)
    name = args.strategy or configured.strategy_name(settings)
    snapshot = inventory.snapshot(config=config, max_age=0.0)
    with current_gates(config) as gates:
        held = gates.held(snapshot)
        wishes = configured.wishes(settings, gates.held_groups(snapshot), gates.held_hosts(snapshot))
    if args.repair:
        wishes = replace(wishes, repair=args.repair)
    seconds = args.deadline or (_SECONDS[name] if args.strategy else configured.seconds(settings))
    return _Asked(snapshot, held, wishes, name, seconds)


def _share(until: float, clusters: int) -> Deadline:
    """What each of so many clusters that are left may take of the time that is left."""
    ends = time.monotonic() + (until - time.monotonic()) / clusters
    return Deadline(lambda: ends - time.monotonic())


def _status(plans: Iterable[Plan], repair: frozenset[Repair]) -> int:
    """What was not asked to be repaired counts for nothing."""
    plans = list(plans)
    wanted = {hard for hard in (True, False) if (Repair.HARD if hard else Repair.SOFT) in repair}
    if any(rule.hard in wanted for plan in plans for rule in plan.remaining):
        return STAYS_BROKEN
    return MENDS_ALL if any(plan.steps for plan in plans) else 0
