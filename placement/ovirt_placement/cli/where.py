"""`ovirt-placement where`: the hosts that may take a VM, from best to worst, with what each weight says."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

from ovirt_placement.answers import where
from ovirt_placement.answers.documents.where import where_document
from ovirt_placement.answers.names import host_name
from ovirt_placement.answers.sentences import sentence, unit_names
from ovirt_placement.answers.where import Ranked
from ovirt_placement.answers.why import HostAnswer
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.question import add_question, find, read_state, show, show_answer, too_many
from ovirt_placement.model import Snapshot, Vm

DESCRIPTION = """\
List the hosts that `ovirt-placement why` accepts for a VM, from best to worst by our weights: the rank that
each gives (0 is best), and the points that the engine's selector makes of them with the policy's factors.
The engine's own weights (CPU, memory, ...) and other sites' units are not reckoned with. Where the cluster's
policy enables the units of placement keys, also what keys say: their nearness, the scores and the round.
Below stand the hosts that are refused, by the engine's own filters or by our units.
"""

EXAMPLES = """\
  ovirt-placement where web1
  ovirt-placement where web1 --state cluster.json --all
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "where", "hosts for a VM, from best to worst", DESCRIPTION, run, EXAMPLES
    )
    parser.add_argument("vm", metavar="VM", help="its name or id")
    add_question(parser)
    columns.add_placement_keys(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    vm = find(args.vm, "VM", snapshot.vms)
    answer = where.order(snapshot, vm, columns.asked(args))
    if args.json:
        show_answer(args, where_document(answer, vm, snapshot))
        return 0
    if answer.hosts:
        headers = columns.HEADERS if answer.keyed else ()
        rows = [_row(host, snapshot) for host in answer.hosts]
        show(rows, ("host", "points", *answer.units, "why", *headers), whole=args.all)
    else:
        print(_nowhere(vm, snapshot))
    _tell_refused(answer.refused, snapshot, whole=args.all)
    return 0


def _nowhere(vm: Vm, snapshot: Snapshot) -> str:
    cluster = snapshot.cluster_by_id[vm.cluster]
    has = "may take it" if snapshot.hosts_of_cluster.get(vm.cluster) else "is there"
    return f"VM {vm.name} of cluster {cluster.name}: no host {has}."


def _row(host: Ranked, snapshot: Snapshot) -> tuple[object, ...]:
    reasons = (reason for weight in host.weights.values() for reason in weight.reasons)
    why_so = "\n".join(dict.fromkeys(sentence(reason, snapshot) for reason in reasons))
    ranks = (weight.rank for weight in host.weights.values())
    keys = columns.cells(host.keys) if host.keys else ()
    return host_name(host.host, snapshot), host.points, *ranks, why_so, *keys


def _tell_refused(refused: Sequence[HostAnswer], snapshot: Snapshot, *, whole: bool) -> None:
    """Say below the table whose verdict keeps the VM off each other host; of many, how many by whom."""
    if refused:
        print()
    by_units: defaultdict[str, list[str]] = defaultdict(list)
    for host in refused:
        by = dict.fromkeys(unit for reason in host.reasons if reason.veto for unit in reason.by)
        by_units[unit_names(by)].append(host_name(host.host, snapshot))
    for units, names in by_units.items():
        if too_many(refused) and not whole and len(names) > 1:
            print(f"{len(names)} hosts are refused by {units}")
        else:
            for name in names:
                print(f"{name} is refused by {units}")
