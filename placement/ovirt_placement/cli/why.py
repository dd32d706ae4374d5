"""`ovirt-placement why`: which hosts may take a VM, and by which rule, group and VM the others may not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from ovirt_placement.answers.sentences import host_name, sentence
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.question import add_question, find, read_state, show, show_json
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.affinity import host_filter, vm_filter
from ovirt_placement.rules.affinity.missing_units import missing_units
from ovirt_placement.rules.built_in import eligibility
from ovirt_placement.rules.placement_keys import placing
from ovirt_placement.rules.placement_keys.decision import HostDecision
from ovirt_placement.rules.placement_keys.parameters import settings_of
from ovirt_placement.rules.verdict import Reason, Request, Verdict

DESCRIPTION = """\
Say of each host of the VM's cluster whether it may take the VM now, and why not: its status, free memory
and pinning as the engine judges them, then hard affinity with VMs and with hosts. Where the cluster's policy
enables the units of placement keys, also what keys say: their nearness, the scores and the round.
"""

_FILTERS = (eligibility.filter_hosts, vm_filter.filter_hosts, host_filter.filter_hosts)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "why", "which hosts may take a VM, and why not the others", DESCRIPTION, run
    )
    parser.add_argument("vm", metavar="VM", help="its name or id")
    parser.add_argument("host", metavar="HOST", nargs="?", help="only this host, by name or id")
    add_question(parser)
    columns.add_placement_keys(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    vm = find(args.vm, "VM", snapshot.vms)
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    if args.host is not None:
        hosts = (find(args.host, "host of its cluster", hosts),)
    verdicts = judge(snapshot, vm, hosts, args)
    by_keys = columns.decisions(snapshot, vm, hosts, args)
    everywhere = missing_units(snapshot, vm.id)
    if args.json:
        show_json([_described(verdict, everywhere, by_keys, snapshot) for verdict in verdicts])
    else:
        rows = [_row(verdict, by_keys, snapshot) for verdict in verdicts]
        show(rows, ("host", "verdict", "why", *(columns.HEADERS if by_keys else ())))
        for note in everywhere:
            print(f"\n{sentence(note, snapshot)}")
    return 0


def judge(
    snapshot: Snapshot, vm: Vm, hosts: tuple[Host, ...], args: argparse.Namespace
) -> tuple[Verdict, ...]:
    """What all filters together say of each host, with the reasons of each; a reason of two is told once."""
    request = Request((vm.id,), tuple(host.id for host in hosts))
    by_filter = [filter_hosts(snapshot, request) for filter_hosts in _FILTERS]
    cluster = snapshot.cluster_by_id[vm.cluster]
    if columns.filters_by_keys(cluster, args):
        settings = settings_of(cluster.scheduling_properties)
        by_filter.append(placing.filter_hosts(snapshot, request, settings))
    return tuple(
        Verdict.of(host, tuple(dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons)))
        for host, *verdicts in zip(request.candidate_hosts, *by_filter, strict=True)
    )


def _row(verdict: Verdict, by_keys: Mapping[str, HostDecision], snapshot: Snapshot) -> tuple[str, ...]:
    why = "\n".join(sentence(reason, snapshot) for reason in verdict.reasons)
    keys = columns.cells(by_keys[verdict.host]) if verdict.host in by_keys else ()
    return host_name(verdict.host, snapshot), _word(verdict), why, *keys


def _described(
    verdict: Verdict,
    everywhere: tuple[Reason, ...],
    by_keys: Mapping[str, HostDecision],
    snapshot: Snapshot,
) -> dict[str, object]:
    found = by_keys.get(verdict.host)
    return {
        "host": verdict.host,
        "name": host_name(verdict.host, snapshot),
        "accepted": verdict.accepted,
        "reasons": [
            {
                "kind": reason.kind,
                "veto": reason.kind.veto,
                "group": reason.group,
                "vm": reason.vm,
                "host": reason.host,
                "number": reason.number,
                "unit": reason.unit,
                "sentence": sentence(reason, snapshot),
            }
            for reason in (*verdict.reasons, *everywhere)
        ],
        **({"placement_keys": columns.described(found)} if found else {}),
    }


def _word(verdict: Verdict) -> str:
    return "accepted" if verdict.accepted else "refused"
