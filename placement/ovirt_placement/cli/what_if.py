"""`ovirt-placement what-if`: what would happen if hosts were emptied, failed or came, and VMs started."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from ovirt_placement.answers.document import find
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.asking import add_question, read_state
from ovirt_placement.cli.changing import FAILS, add_fail_if, add_repair, planning, show_foreseen
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.mobility import LEAVABLE
from ovirt_service.errors import UserError

DESCRIPTION = """\
Predict the effect of maintenance, host failures, new hosts and new VMs, in the order new hosts, maintenance,
failures, new VMs: migrations, violated rules, starts, and how many host failures are survived before and
after. See docs/what-if.md.
The exit status is 3 if a condition of --fail-if is true.
"""
EXAMPLES = """\
  ovirt-placement what-if --maintenance node1
  ovirt-placement what-if --down node1,node2
  ovirt-placement what-if --add-host 'like=node1*2' --vm 'like=web1*20' --fail-if unplaced
"""

#: The share of the time for planning that emptying hosts may take.
_EMPTYING_SHARE = 0.7

_LIKE = re.compile(r"like=(.+?)(?:\*([1-9]\d{0,5}))?\Z", re.IGNORECASE)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(
        subparsers,
        "what-if",
        summary,
        DESCRIPTION,
        run,
        EXAMPLES,
    )
    parser.add_argument(
        "--maintenance",
        metavar="HOST,...",
        help="these hosts go into maintenance",
    )
    parser.add_argument("--down", metavar="HOST,...", help="these hosts fail")
    parser.add_argument(
        "--add-host",
        metavar="like=HOST[*N]",
        type=_like,
        action="append",
        default=[],
        help="add N empty hosts like this one to its cluster; repeatable",
    )
    parser.add_argument(
        "--vm",
        metavar="like=VM[*N]",
        type=_like,
        action="append",
        default=[],
        help="start N VMs like this one, with its groups and labels; repeatable",
    )
    add_fail_if(parser, "exit with status 3 if any of these is true")
    add_repair(parser)
    add_question(parser)


def run(args: argparse.Namespace) -> int:
    from ovirt_placement.answers.what_if import what_if
    from ovirt_placement.forecast.course import course
    from ovirt_placement.forecast.maintenance import evacuate
    from ovirt_placement.forecast.outlook import foresee

    if not (args.maintenance or args.down or args.add_host or args.vm):
        raise UserError("say what is to happen: --maintenance, --down, --add-host or --vm")
    now = read_state(args)
    emptied, down = _hosts(args.maintenance, now, LEAVABLE), _hosts(args.down, now)
    if both := [now.host_by_id[host].name for host in down if host in emptied]:
        raise UserError(f"host {both[0]} cannot both go into maintenance and fail")
    state, starting = _with_more(args, now)
    plans = planning(args)
    evacuations, state = evacuate(state, emptied, plans["deadline"].within(_EMPTYING_SHARE))
    found = course(state, down, starting)
    clusters = dict.fromkeys(
        (
            *(now.host_by_id[host].cluster for host in (*emptied, *down)),
            *(find(name, "host", now.hosts).cluster for name, _ in args.add_host),
            *(found.end.vm_by_id[vm].cluster for vm in starting),
        )
    )
    outlooks = foresee(now, found.end, clusters, **plans)
    answer = what_if(outlooks, found.end, starts=found.starts, stopped=found.stopped, maintenance=evacuations)
    return FAILS if show_foreseen(args, answer) else 0


def _with_more(args: argparse.Namespace, now: Snapshot) -> tuple[Snapshot, tuple[str, ...]]:
    """The state with all that is new, and the VMs of it."""
    from ovirt_placement.forecast.changes import Like, with_host, with_vm

    state, starting = now, list[str]()
    for name, count in args.add_host:
        state = with_host(state, Like(find(name, "host", now.hosts).id, count))
    for name, count in args.vm:
        state, names = with_vm(state, Like(find(name, "VM", now.vms, now).id, count))
        starting.extend(names)
    return state, tuple(starting)


def _hosts(words: str | None, now: Snapshot, statuses: Sequence[str] = ()) -> tuple[str, ...]:
    """Hosts with commas between them, each once. Raises `UserError`."""
    given = words.split(",") if words else ()
    return tuple(dict.fromkeys(_host(word.strip(), now, statuses) for word in given))


def _host(word: str, now: Snapshot, statuses: Sequence[str]) -> str:
    host = find(word, "host", now.hosts)
    # One that does not answer has failed already: what becomes of its VMs is the question.
    in_question = host.status in statuses if statuses else host.up or host.id in now.vms_of_host
    if not in_question:
        raise UserError(f"host {host.name} is {host.status} already")
    return host.id


def _like(text: str) -> tuple[str, int]:
    match = _LIKE.match(text)
    if match is None:
        raise argparse.ArgumentTypeError(f'"{text}": write like=NAME, or like=NAME*20')
    return match[1], int(match[2] or 1)
