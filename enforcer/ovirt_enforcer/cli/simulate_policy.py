"""`ovirt-enforcer simulate-policy`: whether rules, policy and enforcer come to rest, or go in circles."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import NamedTuple

from ovirt_enforcer import configured
from ovirt_enforcer.cli.arguments import add_config, add_deadline, add_json, add_repair, add_state
from ovirt_enforcer.cli.current_gates import current_gates
from ovirt_enforcer.rehearsing import telling
from ovirt_enforcer.rehearsing.course import Outcome
from ovirt_enforcer.rehearsing.rehearsal import rehearse
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.cli.question import add_cluster, clusters_of, show_json
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.planner import Held
from ovirt_placement.planning.problem.posing import Wishes

#: Exit statuses, beside 0 where all clusters settle and 2 for a mistake.
LOOP = 3
NOT_SETTLED = 4

_SECONDS = 60.0


class _Asked(NamedTuple):
    snapshot: Snapshot
    held: Held
    wishes: Wishes


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "simulate-policy",
        help="let rules, scheduling policy and enforcer act on each other, and name a loop if there is one",
        epilog="Exit status: 0 all clusters settle, 3 there is a loop, 4 nobody knows whether one settles.",
    )
    add_config(parser)
    add_state(parser)
    add_cluster(parser)
    add_json(parser)
    add_repair(parser)
    add_deadline(parser, f"how long each cluster may take (default: {_SECONDS:g})")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    asked = _asked(args)
    rehearsals = [
        rehearse(
            asked.snapshot,
            cluster.id,
            asked.held,
            wishes=asked.wishes,
            deadline=_within(args.deadline or _SECONDS),
        )
        for cluster in clusters_of(args, asked.snapshot)
    ]
    if args.json:
        show_json(telling.document(rehearsals, asked.snapshot))
    else:
        print("\n".join(telling.text(one, asked.snapshot) for one in rehearsals))
    outcomes = {one.outcome for one in rehearsals}
    if Outcome.LOOP in outcomes:
        return LOOP
    return NOT_SETTLED if Outcome.UNSETTLED in outcomes else 0


def _asked(args: argparse.Namespace) -> _Asked:
    """A state file by the rules alone; else the engine, by the configuration and what gates hold now."""
    if args.state is not None:
        wishes = Wishes(repair=args.repair) if args.repair else Wishes()
        return _Asked(state_file.load(args.state), (), wishes)
    config = configuration.load(args.config)
    settings = config.section("enforcer", EnforcerSettings)
    snapshot = inventory.snapshot(config=config, max_age=0.0)
    with current_gates(config) as gates:
        held = gates.held(snapshot)
        wishes = configured.wishes(settings, gates.held_groups(snapshot), gates.held_hosts(snapshot))
    if args.repair:
        wishes = replace(wishes, repair=args.repair)
    return _Asked(snapshot, held, wishes)


def _within(seconds: float) -> Deadline:
    until = time.monotonic() + seconds
    return Deadline(lambda: until - time.monotonic())
