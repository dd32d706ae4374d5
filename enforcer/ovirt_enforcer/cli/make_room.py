"""`ovirt-enforcer make-room`: which migrations let a VM start that fits nowhere."""

from __future__ import annotations

import argparse

from ovirt_enforcer.cli.arguments import add_state
from ovirt_enforcer.on_request.documents import RoomFound
from ovirt_enforcer.on_request.room import room_for
from ovirt_placement.answers.finding import find
from ovirt_placement.answers.plans.text import steps_text
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.question import read_state, show_json
from ovirt_placement.model.amounts import counted

#: Exit statuses, besides 0 where the VM can start as things are and 2 for a mistake.
TAKES_MIGRATIONS = 3
FITS_NOWHERE = 4

#: How long planning may take.
_SECONDS = 30.0


DESCRIPTION = """\
Show which migrations let a VM start that no host accepts now; migrate nothing.
Exit status: 0 it can start now, 3 after these migrations, 4 no way was found.
"""

EXAMPLES = """\
  ovirt-enforcer make-room db1
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        commands,
        "make-room",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    parser.add_argument("vm", metavar="VM", help="its name or id")
    add_config(parser)
    add_state(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    found = room_for(snapshot, find(args.vm, "VM", snapshot.vms, snapshot), _SECONDS)
    if args.json:
        show_json(found)
    else:
        print("\n".join(_lines(found)))
    if found.host is None:
        return FITS_NOWHERE
    return TAKES_MIGRATIONS if found.plan.steps else 0


def _lines(found: RoomFound) -> list[str]:
    name, plan = found.vm.name, found.plan
    if found.host is None:
        known = "No migrations let" if plan.proven else "No migrations were found that let"
        refusals = (f"  {one.host.name}: {'; '.join(one.reasons)}" for one in found.because)
        return [f"{known} VM {name} start:", *refusals]
    if not plan.steps:
        return [f"VM {name} can start on host {found.host.name} as things are."]
    count = plan.migrations
    known = ", no fewer will do" if plan.proven else f", at least {plan.at_least} are needed"
    after = f"after {counted(count, 'migration')}{known}:"
    return [f"VM {name} can start on host {found.host.name} {after}", *steps_text(plan.steps)]
