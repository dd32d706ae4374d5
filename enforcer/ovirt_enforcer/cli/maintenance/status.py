"""`ovirt-enforcer maintenance status`: how far the maintenance runs are, and what they wait for."""

from __future__ import annotations

import argparse
import time
from typing import Final

from ovirt_placement.answers.maintenance_runs import MaintenanceRunsDocument, run_lines, runs_document
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.store import stored
from ovirt_placement.store.maintenance import MaintenanceStore
from ovirt_placement.store.maintenance_run import MaintenanceRun, RunState
from ovirt_service.errors import UserError

#: The exit status of a run that ended before its time.
ENDED_EARLY: Final = 4
_LOOK_SECONDS: Final = 2.0

DESCRIPTION = """\
Show the progress of the runs under way and of the last run of each cluster, or of one run.
Exit status: 0, or with --follow 4 if the run ended early.
"""

EXAMPLES = """\
  ovirt-enforcer maintenance status 3f09aa --follow
"""


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(actions, "status", "show the progress of runs", DESCRIPTION, run, EXAMPLES)
    parser.add_argument("run_id", nargs="?", metavar="RUN", help="the id of a run")
    parser.add_argument("--follow", action="store_true", help="show its progress until it ends")
    add_json(parser)
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    if args.run_id is None and not args.follow:
        return _show(args, _latest(_runs(args)))
    run_id = args.run_id or next((one.id for one in _runs(args) if one.active), None)
    if run_id is None:
        raise UserError("no maintenance run is under way")
    return follow(args, run_id) if args.follow else _show(args, [named(args, run_id)])


def follow(args: argparse.Namespace, run_id: str) -> int:
    """Print a run each time that it changes, until it has ended."""
    shown: list[str] = []
    while True:
        found = named(args, run_id)
        lines = [*run_lines(runs_document([found]).runs[0])]
        if not args.json and lines != shown:
            print("\n".join(line for line in lines if line not in shown), flush=True)
            shown = lines
        if not found.active:
            break
        time.sleep(_LOOK_SECONDS)
    if args.json:
        _show(args, [found])
    return 0 if found.state is RunState.DONE else ENDED_EARLY


def _show(args: argparse.Namespace, runs: list[MaintenanceRun]) -> int:
    document: MaintenanceRunsDocument = runs_document(runs)
    if args.json:
        show_json(document)
    elif document.runs:
        print("\n".join(line for one in document.runs for line in run_lines(one)))
    else:
        print("No maintenance run was requested.")
    return 0


def _runs(args: argparse.Namespace) -> tuple[MaintenanceRun, ...]:
    return stored(MaintenanceStore, args, MaintenanceStore.runs, ())


def named(args: argparse.Namespace, run_id: str) -> MaintenanceRun:
    """The run of this id. Raises `UserError` if there is none."""
    for found in _runs(args):
        if found.id == run_id:
            return found
    raise UserError(f"there is no maintenance run {run_id}: ovirt-enforcer maintenance status lists them")


def _latest(runs: tuple[MaintenanceRun, ...]) -> list[MaintenanceRun]:
    """Those that are under way, and else the last of each cluster."""
    last = {one.cluster: one for one in reversed(runs)}
    return [one for one in runs if one.active or last[one.cluster] is one]
