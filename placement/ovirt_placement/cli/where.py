"""`ovirt-placement where`: the hosts that may take a VM, from best to worst, with what each weight says."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Collection, Sequence

from ovirt_placement.answers.document import find, unit_names
from ovirt_placement.answers.keys import key
from ovirt_placement.answers.placement import JudgedHost, RankedHost, WhereDocument, where
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.question import add_question, read_state, show, show_answer, too_many
from ovirt_service import tables

DESCRIPTION = """\
List the hosts that accept a VM, from best to worst by our weights: the rank by each weight (0 is best) and
the points with the policy's factors. The engine's own weights and other sites' units are not included.
Refused hosts follow.
"""

EXAMPLES = """\
  ovirt-placement where web1 --all
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "where", summary, DESCRIPTION, run, EXAMPLES)
    parser.add_argument("vm", metavar="VM", help="by name or id")
    add_question(parser)
    columns.add_placement_keys(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    vm = find(args.vm, "VM", snapshot.vms, snapshot)
    answer = where(snapshot, vm, columns.asked(args))
    if args.json:
        show_answer(args, answer)
        return 0
    if answer.hosts:
        _show_ranked(answer.hosts, whole=args.all)
    else:
        print(_nowhere(answer))
    _show_refused(answer.refused, whole=args.all)
    return 0


def _nowhere(answer: WhereDocument) -> str:
    has = "may take it" if answer.refused else "is there"
    return f"VM {answer.vm.name} of cluster {answer.cluster.name}: no host {has}."


def _show_ranked(hosts: Sequence[RankedHost], *, whole: bool) -> None:
    """A column for each weight; those that rank no host behind another are named below, unless all are."""
    units = [weight.unit for weight in hosts[0].weights]
    ranking = [unit for at, unit in enumerate(units) if any(host.weights[at].rank for host in hosts)]
    shown = units if whole else ranking or units
    keyed = any(one.placement_keys for one in hosts)
    headers = ("host", "points", *shown, "why", *(key.SCORE_HEADERS if keyed else ()))
    show([_row(host, shown) for host in hosts], headers, whole=whole)
    if left_out := [unit for unit in units if unit not in shown]:
        tables.show_lines(["", f"0 for every host (--all shows them): {', '.join(left_out)}"])


def _row(host: RankedHost, units: Collection[str]) -> tuple[object, ...]:
    reasons = (reason.sentence for weight in host.weights for reason in weight.reasons)
    ranks = (weight.rank for weight in host.weights if weight.unit in units)
    keys = key.score_cells(host.placement_keys) if host.placement_keys else ()
    return host.host.name, host.points, *ranks, "\n".join(dict.fromkeys(reasons)), *keys


def _show_refused(refused: Sequence[JudgedHost], *, whole: bool) -> None:
    """Say below the table whose verdict keeps the VM off each other host; of many, how many by whom."""
    if refused:
        print()
    by_units: defaultdict[str, list[str]] = defaultdict(list)
    for host in refused:
        by = dict.fromkeys(unit for reason in host.reasons if reason.veto for unit in reason.by)
        by_units[unit_names(by)].append(host.host.name)
    for units, names in by_units.items():
        if too_many(refused) and not whole and len(names) > 1:
            print(f"{len(names)} hosts are refused by {units}")
        else:
            for name in names:
                print(f"{name} is refused by {units}")
