"""`ovirt-placement why`: which hosts may take a VM, and by which rule, group and VM the others may not."""

from __future__ import annotations

import argparse

from ovirt_placement.commands.question import add_question, find, read_state, show, show_json
from ovirt_placement.explain import host_name, sentence
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules import eligibility, host_affinity, vm_affinity
from ovirt_placement.rules.missing_units import missing_units
from ovirt_placement.rules.verdict import Reason, Request, Verdict

DESCRIPTION = """\
Say of each host of the VM's cluster whether it may take the VM now, and why not: its status, free memory
and pinning as the engine judges them, then hard affinity with VMs and with hosts.
"""

_FILTERS = (eligibility.filter_hosts, vm_affinity.filter_hosts, host_affinity.filter_hosts)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "why",
        help="which hosts may take a VM, and why not the others",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("vm", metavar="VM", help="its name or id")
    parser.add_argument("host", metavar="HOST", nargs="?", help="only this host, by name or id")
    add_question(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    vm = find(args.vm, "VM", snapshot.vms)
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    if args.host is not None:
        hosts = (find(args.host, "host of its cluster", hosts),)
    verdicts = judge(snapshot, vm, hosts)
    everywhere = missing_units(snapshot, vm.id)
    if args.json:
        show_json([_described(verdict, everywhere, snapshot) for verdict in verdicts])
    else:
        show([_row(verdict, snapshot) for verdict in verdicts], ("host", "verdict", "why"))
        for note in everywhere:
            print(f"\n{sentence(note, snapshot)}")
    return 0


def judge(snapshot: Snapshot, vm: Vm, hosts: tuple[Host, ...]) -> tuple[Verdict, ...]:
    """What all filters together say of each host, with the reasons of each."""
    request = Request((vm.id,), tuple(host.id for host in hosts))
    by_filter = [filter_hosts(snapshot, request) for filter_hosts in _FILTERS]
    return tuple(
        Verdict.of(host, tuple(reason for verdict in verdicts for reason in verdict.reasons))
        for host, *verdicts in zip(request.candidate_hosts, *by_filter, strict=True)
    )


def _row(verdict: Verdict, snapshot: Snapshot) -> tuple[str, str, str]:
    why = "\n".join(sentence(reason, snapshot) for reason in verdict.reasons)
    return host_name(verdict.host, snapshot), _word(verdict), why


def _described(verdict: Verdict, everywhere: tuple[Reason, ...], snapshot: Snapshot) -> dict[str, object]:
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
    }


def _word(verdict: Verdict) -> str:
    return "accepted" if verdict.accepted else "refused"
