"""`ovirt-enforcer approve`: let a plan be carried out that waits for a person's word, or list them."""

from __future__ import annotations

import argparse

from ovirt_enforcer.on_request.orders import obstacle
from ovirt_enforcer.on_request.settings_in_force import settings_in_force
from ovirt_enforcer.settings import Mode
from ovirt_placement import config as configuration
from ovirt_placement.answers.approvals import approval_change
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.store import opened, stored
from ovirt_placement.config import Config
from ovirt_placement.store.approvals import ApprovalStore, WaitingPlan
from ovirt_service.errors import UserError

DESCRIPTION = """\
Approve a plan that waits in mode approve: this plan only, for approval_hours.
"""

EXAMPLES = """\
  ovirt-enforcer approve --list
  ovirt-enforcer approve 4f2a91c07d3e
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        commands,
        "approve",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("plan", nargs="?", metavar="PLAN", help="the id of the plan, as --list prints it")
    what.add_argument("--list", action="store_true", help="list the plans that wait")
    add_change(parser)
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    if args.list:
        return _list(args)
    config = configuration.load(args.config)
    hours = settings_in_force(config)["approval_hours"]  # a store that is away says so before all else
    with opened(ApprovalStore, args, create=not args.dry_run) as store:
        before = store.approvals()
        waiting = store.waiting()
        if args.dry_run:
            approved = next((one for one in waiting if one.plan == args.plan), None)
        else:
            approved = store.approve(args.plan, set_by=login_name())
    if approved is None:
        raise UserError(why_not(args.plan, waiting))
    if args.json:
        show_json(approval_change(before, {approved.cluster: approved.plan}, approved.text, args.dry_run))
    else:
        print(approved.text)
        print(
            "Nothing was written: this was a dry run."
            if args.dry_run
            else _said(config, hours, approved.cluster)
        )
    return 0


def _said(config: Config, hours: float, cluster: str) -> str:
    """For how long it counts, and what keeps the enforcer from it."""
    lasts = f"Approved of, for {hours:g} h, or until the cluster needs another plan."
    why = obstacle(config, Mode.APPROVE, cluster)
    return lasts if why is None else f"{lasts}\nIt is not carried out yet: {why}."


def _list(args: argparse.Namespace) -> int:
    waiting = stored(ApprovalStore, args, ApprovalStore.waiting, ())
    if args.json:
        show_json(waiting)
    elif waiting:
        print("\n".join(f"Plan {one.plan}\n{one.text}" for one in waiting))
    else:
        print("No plan waits.")
    return 0


def why_not(plan: str, waiting: tuple[WaitingPlan, ...]) -> str:
    """A plan that does not wait was approved of already, or its cluster has changed since it was made."""
    others = ", ".join(one.plan for one in waiting)
    return f"plan {plan} does not wait, or not any more; {f'these do: {others}' if others else 'none does'}"
