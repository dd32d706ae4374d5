"""`ovirt-placement keys explain`: one placement, step by step and host by host."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ovirt_placement.answers.documents.keys import keys_explain_document
from ovirt_placement.answers.finding import find
from ovirt_placement.answers.key_scores import host_keys
from ovirt_placement.answers.key_sentences import figure
from ovirt_placement.answers.sentences import Unit, unit_names
from ovirt_placement.answers.why import others_refuse
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.keys.columns import KEY_FILTER
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import listed, show, show_answer
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name
from ovirt_placement.rules.placement_keys.capacity import Room, Shortage
from ovirt_placement.rules.placement_keys.decision import Decision, Failure
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.placement_keys.parameters import settings_of
from ovirt_placement.rules.placement_keys.placing import decide_vm

_SHORTAGES = {
    Shortage.NOT_UP: "is not up",
    Shortage.UNCONTENDED: "{there} MiB not handed out, {need} must fit with some to spare",
    Shortage.CONTENDED: "{there} MiB physically free, {need} must fit with some to spare",
}
_FAILURES = {
    Failure.CONSTRAINT: "No host is capable of running it.",
    Failure.THRESHOLD: "No host's score is above the last threshold, {final}.",
}


def run(args: argparse.Namespace) -> int:
    snapshot = read_keys(args).snapshot
    vm = find(args.vm, "VM", snapshot.vms)
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    asked = tuple(host.id for host in hosts if args.stay or host.id != vm.host)
    settings = settings_of(snapshot.cluster_by_id[vm.cluster].scheduling_properties)
    refused = others_refuse(snapshot, vm, KEY_FILTER)
    left = [host for host in asked if host not in refused]
    every = decide_vm(snapshot, vm, asked, settings)
    decision = every if every.failed is not None else decide_vm(snapshot, vm, left, settings)
    others = every.failed is None and not left
    told = _outcome(decision, snapshot, others=others, whole=args.all)
    if args.json:
        units = [(host, refused.get(host, ())) for host in asked]
        show_answer(args, keys_explain_document(decision, every, vm, units, told, snapshot))
        return 0
    if every.hosts:
        rows = [_row(one, decision, refused.get(one.host, ()), snapshot) for one in every.hosts]
        show(rows, ("host", *columns.HEADERS, ""), whole=args.all)
        print()
    print(told)
    return 0


def _row(
    one: HostDecision, decision: Decision, refused_by: Sequence[Unit], snapshot: Snapshot
) -> tuple[str, ...]:
    name = host_name(one.host, snapshot)
    if one.system is None:
        return name, _lacking(one.room), "", "", "", "", "no room"
    if refused_by:
        return name, *columns.cells(host_keys(one)), f"refused by {unit_names(refused_by)}"
    chosen = "chosen" if one.host in decision.choice else "" if one.round else "refused"
    return name, *columns.cells(host_keys(one)), chosen


def _lacking(room: Room) -> str:
    figures = {
        Shortage.NOT_UP: ("", 0),
        Shortage.UNCONTENDED: (figure(room.uncontended_mb), room.uncontended_need_mb),
        Shortage.CONTENDED: (str(room.contended_mb), room.contended_need_mb),
    }
    return "\n".join(
        _SHORTAGES[shortage].format(there=figures[shortage][0], need=figures[shortage][1])
        for shortage in room.shortages
    )


def _outcome(decision: Decision, snapshot: Snapshot, *, others: bool, whole: bool) -> str:
    """Which hosts are chosen from; `others` if other filters leave none to the keys."""
    names = listed([host_name(host, snapshot) for host in decision.choice], " or ", whole=whole)
    if others:
        return "Other filters refuse every host: keys have nothing to choose from."
    if decision.local_storage:
        return f"Its storage is local, so that keys do not count: {names}."
    if decision.failed is not None or decision.round is None:
        return _FAILURES[decision.failed or Failure.CONSTRAINT].format(final=figure(decision.thresholds[-1]))
    above = figure(decision.thresholds[decision.round - 1])
    drawn = ", by lot" if len(decision.choice) > 1 else ""
    return f"Round {decision.round} (above {above}): {names}{drawn}."
