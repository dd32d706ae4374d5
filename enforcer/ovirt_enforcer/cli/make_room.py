"""`ovirt-enforcer make-room`: which migrations let a VM start that fits nowhere."""

from __future__ import annotations

import argparse

from ovirt_enforcer.cli.arguments import add_config, add_json, add_state
from ovirt_enforcer.cli.documents import RefusingHost, RoomFound
from ovirt_placement.answers.names import host_name, named_host, named_vm, vm_name
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.question import find, read_state, show_json
from ovirt_placement.model import Snapshot
from ovirt_placement.planning import report
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.make_room import Room, make_room
from ovirt_placement.planning.plan_data import plan_data
from ovirt_service.errors import UserError

#: Exit statuses, beside 0 where the VM can start as things are and 2 for a mistake.
TAKES_MIGRATIONS = 3
FITS_NOWHERE = 4

#: How long planning may take.
_SECONDS = 30.0


DESCRIPTION = """\
Say which migrations of other VMs let a VM start that no host takes now, and on which host; migrate nothing.
Exit status: 0 it can start as things are, 3 after these migrations, 4 no way was found.
"""

EXAMPLES = """\
  ovirt-enforcer make-room db1
  ovirt-enforcer make-room db1 --state cluster.json --json
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "make-room",
        "say which migrations let a VM start that fits nowhere",
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
    vm = find(args.vm, "VM", snapshot.vms)
    if vm.host is not None:
        raise UserError(f"VM {vm.name} runs on host {host_name(vm.host, snapshot)} already")
    room = make_room(snapshot, vm.id, deadline=Deadline.after(_SECONDS))
    if args.json:
        show_json(_data(room, snapshot))
    else:
        print("\n".join(_lines(room, snapshot)))
    if room.host is None:
        return FITS_NOWHERE
    return TAKES_MIGRATIONS if room.plan.steps else 0


def _lines(room: Room, snapshot: Snapshot) -> list[str]:
    name = vm_name(room.vm, snapshot)
    if room.host is None:
        known = "No migrations let" if room.plan.proven else "No migrations were found that let"
        refusals = (f"  {host_name(host, snapshot)}: {'; '.join(why)}" for host, why in room.because)
        return [f"{known} VM {name} start:", *refusals]
    host = host_name(room.host, snapshot)
    if not room.plan.steps:
        return [f"VM {name} can start on host {host} as things are."]
    count = room.plan.migrations
    known = ", no fewer will do" if room.plan.proven else f", at least {room.plan.at_least} are needed"
    first = f"VM {name} can start on host {host} after {count} migration{'s' if count > 1 else ''}{known}:"
    return [first, *report.steps_text(room.plan, snapshot)]


def _data(room: Room, snapshot: Snapshot) -> RoomFound:
    return RoomFound(
        vm=named_vm(room.vm, snapshot),
        host=None if room.host is None else named_host(room.host, snapshot),
        plan=plan_data(room.plan, snapshot),
        because=tuple(RefusingHost(named_host(host, snapshot), why) for host, why in room.because),
    )
