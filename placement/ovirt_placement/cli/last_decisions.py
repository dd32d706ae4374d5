"""`ovirt-placement why VM --last`: what the scheduler proxy answered last about a VM."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.answers.documents.last_decisions import (
    HostInDecision,
    LastDecisionsDocument,
    PastDecision,
)
from ovirt_placement.answers.last_decisions import FILTERS, WEIGHTS, Decision, last_about, record_of
from ovirt_placement.cli.question import show, show_answer
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named, host_name, named_host, named_hosts


def add_last(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--last", action="store_true", help="what the proxy answered last about the VM, from its record"
    )
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE",
        help="with --last: the proxy's record, where its configuration in /etc does not say it",
    )


def run(args: argparse.Namespace, snapshot: Snapshot, vm: Vm, only: Host | None) -> int:
    """Tell of the last decisions about the VM: of one host, or of all that the engine asked about."""
    record = args.decisions or record_of(config.load(args.config).engine.name)
    decisions = last_about(vm.id, record)
    if args.json:
        found = tuple(_described(decision, snapshot, only) for decision in decisions)
        show_answer(args, LastDecisionsDocument(vm=Named(vm.id, vm.name), decisions=found))
    elif not decisions:
        print(f"{record} holds no decision about VM {vm.name}")
    else:
        for decision in decisions:
            _tell(decision, snapshot, only, whole=args.all)
    return 0


def _tell(decision: Decision, snapshot: Snapshot, only: Host | None, *, whole: bool) -> None:
    print(
        f"{_moment(decision)} {decision.method} ({decision.seconds * 1e3:.1f} ms{_age(decision)},"
        f" request {decision.request}): {_summary(decision, snapshot)}"
    )
    for unit, sentence in decision.failure_sentences.items():
        print(f"{unit} {sentence}")
    units = tuple(decision.weights)
    if decision.method in (FILTERS, WEIGHTS):
        rows = [_row(at, host, decision, snapshot) for at, host in _asked(decision, only)]
        headers = ("host", "verdict", "by") if decision.method == FILTERS else ("host", *units)
        show(rows, headers, whole=whole)
    print()


def _age(decision: Decision) -> str:
    age = decision.oldest_state_seconds
    return "" if age is None else f", on a state {age:.1f} s old"


def _summary(decision: Decision, snapshot: Snapshot) -> str:
    if decision.method == FILTERS:
        return f"{len(decision.hosts) - len(decision.fallen)} of {len(decision.hosts)} hosts are left"
    if decision.balance is not None:
        return "it is to move to " + " or ".join(host_name(host, snapshot) for host in decision.balance[1])
    return "weights, of which the lowest is best"


def _asked(decision: Decision, only: Host | None) -> list[tuple[int, str]]:
    """The hosts asked about, with their places in the lists of weights."""
    return [(at, host) for at, host in enumerate(decision.hosts) if only is None or host == only.id]


def _row(at: int, host: str, decision: Decision, snapshot: Snapshot) -> tuple[object, ...]:
    if decision.method == WEIGHTS:
        return host_name(host, snapshot), *(weights[at] for weights in decision.weights.values())
    units = decision.fallen.get(host, ())
    return host_name(host, snapshot), "dropped" if units else "left", ", ".join(units)


def _moment(decision: Decision) -> str:
    return datetime.fromtimestamp(decision.time).astimezone().isoformat(sep=" ", timespec="milliseconds")


def _described(decision: Decision, snapshot: Snapshot, only: Host | None) -> PastDecision:
    return PastDecision(
        time=_moment(decision),
        request=decision.request,
        method=decision.method,
        seconds=decision.seconds,
        state_age_seconds=decision.state_age_seconds,
        sentence=_summary(decision, snapshot),
        hosts=tuple(
            HostInDecision(
                named_host(host, snapshot),
                decision.fallen.get(host, ()),
                {unit: weights[at] for unit, weights in decision.weights.items()},
            )
            for at, host in _asked(decision, only)
        ),
        move_to=named_hosts(decision.balance[1], snapshot) if decision.balance else (),
        failures=decision.failure_sentences,
    )
