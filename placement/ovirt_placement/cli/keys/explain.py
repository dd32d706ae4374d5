"""`ovirt-placement keys explain`: one placement, step by step and host by host."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.key_sentences import figure
from ovirt_placement.answers.names import host_name
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import find, show, show_json
from ovirt_placement.model import Snapshot
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
    decision = decide_vm(snapshot, vm, asked, settings)
    if args.json:
        show_json(_described(decision))
        return 0
    if not decision.local_storage:
        rows = [_row(one, decision, snapshot) for one in decision.hosts]
        show(rows, ("host", *columns.HEADERS, ""))
        print()
    print(_outcome(decision, snapshot))
    return 0


def _row(one: HostDecision, decision: Decision, snapshot: Snapshot) -> tuple[str, ...]:
    name = host_name(one.host, snapshot)
    if one.system is None:
        return name, _lacking(one.room), "", "", "", "", "no room"
    chosen = "chosen" if one.host in decision.choice else "" if one.round else "refused"
    return name, *columns.cells(one), chosen


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


def _outcome(decision: Decision, snapshot: Snapshot) -> str:
    names = " or ".join(host_name(host, snapshot) for host in decision.choice)
    if decision.local_storage:
        return f"Its storage is local, so that keys do not count: {names}."
    if decision.failed is not None or decision.round is None:
        return _FAILURES[decision.failed or Failure.CONSTRAINT].format(final=figure(decision.thresholds[-1]))
    above = figure(decision.thresholds[decision.round - 1])
    drawn = ", by lot" if len(decision.choice) > 1 else ""
    return f"Round {decision.round} (above {above}): {names}{drawn}."


def _described(decision: Decision) -> dict[str, object]:
    return {
        "thresholds": [float(threshold) for threshold in decision.thresholds],
        "round": decision.round,
        "candidates": decision.candidates,
        "choice": decision.choice,
        "failed": decision.failed,
        "local_storage": decision.local_storage,
        "hosts": [columns.described(one) for one in decision.hosts],
    }
