"""`ovirt-placement why`: which hosts may take a VM, and by which rule, group and VM the others may not."""

from __future__ import annotations

import argparse

from ovirt_placement.answers import why
from ovirt_placement.answers.names import host_name
from ovirt_placement.answers.sentences import unit_names
from ovirt_placement.answers.why import HostAnswer, WhyAnswer
from ovirt_placement.cli import last_decisions
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.question import add_question, find, read_state, show, show_json
from ovirt_placement.model import Snapshot

DESCRIPTION = """\
Say of each host of the VM's cluster whether it may take the VM now, and why not: its status, free memory,
pinning and hard affinity as the engine's own filters judge them, and hard affinity as our units do. The last
column tells whose verdict it is; the engine's own filters are taken to stand in the policy. Where the policy
enables the units of placement keys, also what keys say: their nearness, the scores and the round.

With --last, what the scheduler proxy answered last about the VM, when, and which unit dropped which host: of
all its plugins, as it recorded it ([decisions] file in the proxy's configuration).
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "why", "which hosts may take a VM, and why not the others", DESCRIPTION, run
    )
    parser.add_argument("vm", metavar="VM", help="its name or id")
    parser.add_argument("host", metavar="HOST", nargs="?", help="only this host, by name or id")
    add_question(parser)
    columns.add_placement_keys(parser)
    last_decisions.add_last(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    vm = find(args.vm, "VM", snapshot.vms)
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    if args.host is not None:
        hosts = (find(args.host, "host of its cluster", hosts),)
    if args.last:
        return last_decisions.run(args, snapshot, vm, hosts[0] if args.host is not None else None)
    answer = why.judge(snapshot, vm, hosts, columns.asked(args))
    if args.json:
        show_json([_described(host, answer, snapshot) for host in answer.hosts])
        return 0
    headers = columns.HEADERS if answer.keyed else ()
    show([_row(host, snapshot) for host in answer.hosts], ("host", "verdict", "why", "by", *headers))
    for note in answer.everywhere:
        print(f"\n{note.sentence}")
    return 0


def _row(answer: HostAnswer, snapshot: Snapshot) -> tuple[str, ...]:
    why_so = "\n".join(reason.sentence for reason in answer.reasons)
    whose = "\n".join(unit_names(reason.by) for reason in answer.reasons)
    keys = columns.cells(answer.keys) if answer.keys else ()
    verdict = "accepted" if answer.accepted else "refused"
    return host_name(answer.host, snapshot), verdict, why_so, whose, *keys


def _described(host: HostAnswer, answer: WhyAnswer, snapshot: Snapshot) -> dict[str, object]:
    return {
        "host": host.host,
        "name": host_name(host.host, snapshot),
        "accepted": host.accepted,
        "reasons": (*host.reasons, *answer.everywhere),
        **({"placement_keys": columns.described(host.keys)} if host.keys else {}),
    }
