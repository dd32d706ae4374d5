"""`ovirt-enforcer undo`: which migrations would undo what a plan has done, by the rules of today."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ovirt_enforcer.on_request.documents import PlansBack
from ovirt_enforcer.on_request.undoing import moved_by, way_back
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.answers.plans.text import step_text
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.question import PATIENCE_SECONDS, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.model.amounts import counted
from ovirt_placement.store.history import HistoryStore, PlanRecord
from ovirt_service.errors import UserError

#: Exit statuses, besides 0 where nothing can be undone and 2 for a mistake.
UNDOES_ALL = 3
SOMETHING_STAYS = 4

DESCRIPTION = """\
Show which migrations would undo a plan; migrate nothing. `ovirt-enforcer apply` executes what --json prints.
Exit status: 0 there is nothing to undo, 3 the migrations undo all, 4 something stays as it is.
"""

EXAMPLES = """\
  ovirt-enforcer undo 4f2a --json > back.json
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        commands,
        "undo",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    parser.add_argument("plan", metavar="PLAN", help="its id, or the beginning of it")
    add_config(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    record = _record(args)
    config = configuration.load(args.config)
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=PATIENCE_SECONDS)
    found = way_back(config, snapshot, record)
    if args.json:
        show_json(found)
    else:
        print("\n".join(_lines(found, begun=bool(moved_by(record)))))
    if found.kept:
        return SOMETHING_STAYS
    return UNDOES_ALL if found.clusters[0].steps else 0


def _record(args: argparse.Namespace) -> PlanRecord:
    with opened(HistoryStore, args, create=False) as store:
        found = store.plans_named(args.plan)
    if not found:
        raise UserError(f'no plan "{args.plan}" is recorded: ovirt-enforcer history lists the plans')
    if len(found) > 1:
        raise UserError(f'plan "{args.plan}" is ambiguous: say {" or ".join(one.id for one in found)}')
    return found[0]


def _lines(found: PlansBack, *, begun: bool) -> Iterator[str]:
    (plan,) = found.clusters
    if plan.steps:
        count = f"{counted(plan.migrations, 'migration')}"
        yield f"Cluster {plan.cluster.name}: {count} to undo plan {found.undoes}"
    elif not begun:
        yield f"Nothing can be undone yet: no migration of plan {found.undoes} has ended."
    elif found.kept:
        yield f"Cluster {plan.cluster.name}: nothing of plan {found.undoes} can be undone now"
    else:
        yield f"Nothing is left to undo: the VMs of plan {found.undoes} are where they were before it."
    yield from (f"  {number}. {step_text(step)}" for number, step in enumerate(plan.steps, 1))
    yield from (f"  {one.name} stays: {one.because}" for one in found.kept)
