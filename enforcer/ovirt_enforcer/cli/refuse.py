"""`ovirt-enforcer refuse`: have a plan wait no more for a person's word, and say why."""

from __future__ import annotations

import argparse

from ovirt_enforcer.cli.approve import why_not
from ovirt_enforcer.on_request.settings_in_force import settings_in_force
from ovirt_placement import config as configuration
from ovirt_placement.answers.approvals import refusal_change
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.question import show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.store.approvals import ApprovalStore
from ovirt_service.errors import UserError
from ovirt_service.legible import unbroken

DESCRIPTION = """\
Refuse a plan that waits in mode approve: it is not offered again for approval_hours, unless its cluster needs
another plan.
"""

EXAMPLES = """\
  ovirt-enforcer refuse 4f2a91c07d3e --reason "backup tonight"
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        commands,
        "refuse",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    parser.add_argument("plan", metavar="PLAN", help="the id of the plan, as approve --list prints it")
    parser.add_argument("--reason", metavar="TEXT", default="", help="shown by history")
    add_change(parser)
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    hours = settings_in_force(configuration.load(args.config))["approval_hours"]
    with opened(ApprovalStore, args, create=not args.dry_run) as store:
        waiting = store.waiting()
        if args.dry_run:
            refused = next((one for one in waiting if one.plan == args.plan), None)
        else:
            refused = store.refuse(args.plan, set_by=login_name(), reason=unbroken(args.reason.strip()))
    if refused is None:
        raise UserError(why_not(args.plan, waiting))
    if args.json:
        show_json(refusal_change(refused, args.dry_run))
    else:
        print(refused.text)
        lasts = f"Refused: it is not offered again for {hours:g} h, unless the cluster needs another."
        print("Nothing was written: this was a dry run." if args.dry_run else lasts)
    return 0
