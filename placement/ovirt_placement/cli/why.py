"""`ovirt-placement why`: which hosts may take a VM, and by which rule, group and VM the others may not."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.document import find, listed, unit_names
from ovirt_placement.answers.keys import key
from ovirt_placement.answers.placement import (
    JudgedHost,
    Restart,
    WhyDocument,
    after_text,
    not_asked_text,
    restart_text,
    why,
)
from ovirt_placement.cli import past_decisions
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.question import add_question, read_state, show, show_answer, too_many
from ovirt_placement.inventory import Measured
from ovirt_service.errors import UserError

DESCRIPTION = """\
Show for each host of the VM's cluster whether it may take the VM now, and why not, by the engine's filters
and by ours (docs/rules.md). With --last, --at or --refused, show what the scheduler proxy decided in the
past, from its record and the engine's events (docs/proxy.md).
"""

EXAMPLES = """\
  ovirt-placement why web1                  # every host of its cluster
  ovirt-placement why web1 --fail-if-refused   # for a script
  ovirt-placement why web1 --at 02:13       # why it did not start last night
  ovirt-placement why --refused --since 1d  # all that was refused since yesterday
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "why", summary, DESCRIPTION, run, EXAMPLES)
    parser.add_argument("vm", metavar="VM", nargs="?", help="by name or id; with --refused, else all")
    parser.add_argument("host", metavar="HOST", nargs="?", help="only this host, by name or id")
    add_question(parser)
    parser.add_argument(
        "--fail-if-refused", action="store_true", help="exit with status 1 if no host accepts the VM"
    )
    columns.add_placement_keys(parser)
    past_decisions.add_past(parser)


def run(args: argparse.Namespace) -> int:
    past = past_decisions.asked(args)
    if past and args.fail_if_refused:
        raise UserError("--fail-if-refused is about now: it goes without --last, --at and --refused")
    if args.vm is None and not args.refused:
        raise UserError("which VM? why VM, or why --refused for all that were refused")
    snapshot = read_state(args, measured=_measured(args))
    if args.refused:
        one = None if args.vm is None else find(args.vm, "VM", snapshot.vms, snapshot)
        return past_decisions.run_refused(args, snapshot, one)
    vm = find(args.vm, "VM", snapshot.vms, snapshot)
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    if args.host is not None:
        hosts = (find(args.host, "host of its cluster", hosts),)
    if past:
        return past_decisions.run(args, snapshot, vm, hosts[0] if args.host is not None else None)
    if not hosts:
        raise UserError(f"cluster {snapshot.cluster_by_id[vm.cluster].name} of VM {vm.name} has no hosts")
    answer = why(snapshot, vm, hosts, columns.asked(args))
    if args.json:
        show_answer(args, answer)
    else:
        _show(answer, whole=args.all)
        if args.host is None and answer.restart is not None:
            _show_restart(answer.vm.name, answer.restart)
    return int(args.fail_if_refused and not any(one.accepted for one in answer.hosts))


def _measured(args: argparse.Namespace) -> Measured:
    """Filters ask for what their units read; placement keys, where no policy says so, for all."""
    return Measured.FOR_RESERVATION if columns.asked(args) else Measured.FOR_UNITS


def _show(answer: WhyDocument, *, whole: bool) -> None:
    keyed = any(one.placement_keys for one in answer.hosts)
    headers = ("host", "verdict", "why", "by", *(key.SCORE_HEADERS if keyed else ()))
    if whole or not too_many(answer.hosts):
        show([_row(host) for host in answer.hosts], headers)
    else:
        _show_of_many(answer, headers)
    for note in answer.notes:
        print(f"\n{note.sentence}")
    for one in answer.not_asked:
        print(f"\n{not_asked_text(one, answer.cluster.name)}")


def _show_restart(name: str, restart: Restart) -> None:
    print(f"\n{restart_text(name, restart)}")
    for after in restart.after:
        print(after_text(name, after))


def _show_of_many(answer: WhyDocument, headers: tuple[str, ...]) -> None:
    """Of many hosts, the refused ones, and how many may take the VM."""
    accepted = [one.host.name for one in answer.hosts if one.accepted]
    refused = [one for one in answer.hosts if not one.accepted]
    if refused:
        show([_row(one) for one in refused], headers, whole=False)
        print()
    names = f": {listed(accepted)} (--all lists all)" if accepted else ""
    print(f"{len(accepted)} of {len(answer.hosts)} hosts may take VM {answer.vm.name}{names}")


def _row(host: JudgedHost) -> tuple[str, ...]:
    why_so = "\n".join(reason.sentence for reason in host.reasons)
    whose = "\n".join(unit_names(reason.by) for reason in host.reasons)
    keys = key.score_cells(host.placement_keys) if host.placement_keys else ()
    return host.host.name, "accepted" if host.accepted else "refused", why_so, whose, *keys
