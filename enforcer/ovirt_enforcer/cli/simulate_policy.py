"""`ovirt-enforcer simulate-policy`: whether rules, policy and enforcer come to rest, or go in circles."""

from __future__ import annotations

import argparse

from ovirt_enforcer.cli.arguments import add_deadline, add_repair, add_state
from ovirt_enforcer.cli.asking import asked
from ovirt_enforcer.policy_simulation import report
from ovirt_enforcer.policy_simulation.course import SimulationOutcome
from ovirt_enforcer.policy_simulation.data import simulations_data
from ovirt_enforcer.policy_simulation.simulation import simulate
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.question import add_cluster, clusters_of, show_json
from ovirt_placement.planning.deadline import Deadline

#: Exit statuses, besides 0 where all clusters settle and 2 for a mistake.
LOOP = 3
NOT_SETTLED = 4

_SECONDS = 60.0


DESCRIPTION = """\
Simulate enforcer, engine and scheduling policy until no VM moves any more. See
docs/enforcer/simulate-policy.md.
Exit status: 0 all clusters settle, 3 there is a loop, 4 undecided.
"""

EXAMPLES = """\
  ovirt-enforcer simulate-policy --cluster blue
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        commands,
        "simulate-policy",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    add_config(parser)
    add_state(parser)
    add_cluster(parser)
    add_json(parser)
    add_repair(parser)
    add_deadline(parser, f"the time limit for each cluster (default: {_SECONDS:g})")


def run(args: argparse.Namespace) -> int:
    found = asked(args)
    simulations = [
        simulate(
            found.snapshot,
            cluster.id,
            found.frozen,
            options=found.options,
            deadline=Deadline.after(args.deadline or _SECONDS),
        )
        for cluster in clusters_of(args, found.snapshot)
    ]
    if args.json:
        show_json(simulations_data(simulations, found.snapshot))
    else:
        print("\n".join(report.text(one, found.snapshot) for one in simulations))
    outcomes = {one.outcome for one in simulations}
    if SimulationOutcome.LOOP in outcomes:
        return LOOP
    return NOT_SETTLED if SimulationOutcome.UNSETTLED in outcomes else 0
