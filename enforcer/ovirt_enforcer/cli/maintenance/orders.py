"""`ovirt-enforcer maintenance pause`, `resume` and `stop`: what becomes of a run that is under way."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_enforcer.on_request.maintenance_runs import ORDERS, RunOrder
from ovirt_placement.answers.maintenance_runs import runs_change
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.store.maintenance import MaintenanceStore
from ovirt_placement.store.maintenance_run import MaintenanceRun
from ovirt_service.errors import UserError


class _Command(NamedTuple):
    name: str
    summary: str
    description: str


_COMMANDS = (
    _Command(
        "pause",
        "pause a run",
        "Pause a run. Operations already started in the engine continue.\n",
    ),
    _Command("resume", "resume a run", "Resume a paused run.\n"),
    _Command(
        "stop",
        "end a run",
        "End a run: no other host begins; a host in maintenance is activated first.\n",
    ),
)


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    for command in _COMMANDS:
        run: Callable[[argparse.Namespace], int] = partial(_run, ORDERS[command.name])
        parser = add_command(
            actions,
            command.name,
            command.summary,
            command.description,
            run,
            f"  ovirt-enforcer maintenance {command.name}\n",
        )
        parser.add_argument("run_id", nargs="?", metavar="RUN", help="its id, if several are under way")
        add_change(parser)
        add_config(parser)


def _run(order: RunOrder, args: argparse.Namespace) -> int:
    with opened(MaintenanceStore, args, create=not args.dry_run) as store:
        found = _found(store.active(), args.run_id)
        obeyed = found.state in order.after if args.dry_run else _obeyed(store, found, order)
    if not obeyed:
        raise UserError(f"maintenance run {found.id} is {found.state}")
    if args.json:
        show_json(runs_change(found, replace(found, state=order.state), dry_run=args.dry_run))
        return 0
    print(f"Maintenance run {found.id} of cluster {found.cluster_name} {order.said}.")
    if args.dry_run:
        print("Nothing was written: this was a dry run.")
    return 0


def _obeyed(store: MaintenanceStore, run: MaintenanceRun, order: RunOrder) -> bool:
    return store.order(run.id, order.state, after=order.after, set_by=login_name())


def _found(active: tuple[MaintenanceRun, ...], run_id: str | None) -> MaintenanceRun:
    named = [one for one in active if run_id in (None, one.id)]
    if not named:
        raise UserError(f"no maintenance run {run_id or ''}".rstrip() + " is under way")
    if len(named) > 1:
        raise UserError(f"several runs are under way, name one: {', '.join(one.id for one in named)}")
    return named[0]
