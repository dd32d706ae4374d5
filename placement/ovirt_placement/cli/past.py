"""`ovirt-placement why`: of now, and by the proxy's record of the past with `--last`, `--at`, `--refused`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ovirt_placement import config
from ovirt_placement.answers.decisions.decision import (
    PastDecision,
    decision_headers,
    decision_lines,
    decision_rows,
    last_decisions,
)
from ovirt_placement.answers.decisions.record import NoRecord, record_of
from ovirt_placement.answers.document import find
from ovirt_placement.cli.arguments import positive
from ovirt_placement.cli.asking import add_question_command, read_state, show, show_answer
from ovirt_placement.inventory import Measured
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.answers.decisions.at_time import Attempt, DecisionsAtDocument, Moment
    from ovirt_placement.engine.reading.events import LatestEvents

_WEEK = "7d"
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_question_command(subparsers, "why", summary, _read)
    _add_past(parser)
    parser.set_defaults(run=run, ask_now=parser.get_default("run"))


def run(args: argparse.Namespace) -> int:
    past = _is_past(args)
    if past and args.fail_if_refused:
        raise UserError("--fail-if-refused is about now: it goes without --last, --at and --refused")
    if args.vm is None and not args.refused:
        raise UserError("which VM? why VM, or why --refused for all that were refused")
    if not past:
        return int(args.ask_now(args))
    snapshot = read_state(args, measured=Measured.FOR_UNITS)
    if args.refused:
        return _run_refused(args, snapshot, None if args.vm is None else _vm(args, snapshot))
    vm = _vm(args, snapshot)
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    only = None if args.hosts is None else find(args.hosts, "host of its cluster", hosts)
    return _run_past(args, snapshot, vm, only)


def _read(args: argparse.Namespace, measured: Measured) -> tuple[Snapshot, Snapshot]:
    """The state. Raises `UserError` where there is no host to ask about."""
    snapshot = read_state(args, measured=measured)
    vm = _vm(args, snapshot)
    if args.hosts is None and not snapshot.hosts_of_cluster.get(vm.cluster):
        raise UserError(f"cluster {snapshot.cluster_by_id[vm.cluster].name} of VM {vm.name} has no hosts")
    return snapshot, snapshot


def _vm(args: argparse.Namespace, snapshot: Snapshot) -> Vm:
    return find(args.vm, "VM", snapshot.vms, snapshot)


def _add_past(parser: argparse.ArgumentParser) -> None:
    """Add the options that are about the past; one of them at most."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--last",
        nargs="?",
        const=1,
        type=positive,
        metavar="N",
        help="the last N decisions about the VM (default: 1)",
    )
    which.add_argument(
        "--at",
        type=_moment,
        metavar="TIME",
        help='the decisions around that time: 02:13, "yesterday 02:13", 2026-01-31T02:13+01:00',
    )
    which.add_argument(
        "--refused",
        action="store_true",
        help="starts and migrations that were refused",
    )
    parser.add_argument(
        "--since",
        type=_since,
        metavar="TIME",
        help=f"with --refused: 12h, 3d, or a time as of --at (default: {_WEEK})",
    )
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE",
        help="the proxy's record, if not where its configuration says",
    )


def _is_past(args: argparse.Namespace) -> bool:
    """Whether the past is asked about. Raises `UserError` where an option goes without the one it needs."""
    if args.since is not None and not args.refused:
        raise UserError("--since goes with --refused")
    return args.last is not None or args.at is not None or bool(args.refused)


def _run_past(args: argparse.Namespace, snapshot: Snapshot, vm: Vm, only: Host | None) -> int:
    """Answer `--last` and `--at`, about one host or all that the engine asked about."""
    record = _record(args)
    if args.at is not None:
        return _show_at(args, snapshot, vm, only, record)
    answer = last_decisions(snapshot, vm, record, only, args.last)
    if args.json:
        show_answer(args, answer)
    elif not answer.decisions:
        print(f"{record} has no decision about VM {vm.name}")
    else:
        for decision in answer.decisions:
            _show(decision, whole=args.all)
    return 0


def _run_refused(args: argparse.Namespace, snapshot: Snapshot, vm: Vm | None) -> int:
    """Answer `--refused`; without a record, by the engine's events alone."""
    from ovirt_placement.answers.decisions import refused

    since = args.since if args.since is not None else _since(_WEEK)
    record: Path | None = None
    record_error = None
    try:
        record = _record(args)
    except NoRecord as error:
        record_error = str(error)
    events, events_error = _events(args)
    try:
        answer = refused.refused_placements(snapshot, record, since, events, (record_error, events_error), vm)
    except NoRecord as error:
        answer = refused.refused_placements(snapshot, None, since, events, (str(error), events_error), vm)
    if args.json:
        show_answer(args, answer)
    else:
        print("\n".join(refused.lines(answer, whole=args.all)).rstrip())
    return 0


def _show_at(args: argparse.Namespace, snapshot: Snapshot, vm: Vm, only: Host | None, record: Path) -> int:
    from ovirt_placement.answers.decisions.at_time import decisions_at

    events, events_error = _events(args)
    answer = decisions_at(snapshot, vm, record, args.at, events, events_error, only)
    if args.json:
        show_answer(args, answer)
    else:
        _print_at(answer, record, whole=args.all)
    return 0


def _print_at(answer: DecisionsAtDocument, record: Path, *, whole: bool) -> None:
    print(f"VM {answer.vm.name} at {answer.at}{f' ({answer.note})' if answer.note else ''}")
    if answer.record_begins is not None:
        print(f"The proxy's record begins later, at {answer.record_begins}.")
    for title, attempt in (("The last decision until then", answer.before), ("The next one", answer.after)):
        if attempt is not None:
            _print_attempt(title, attempt, whole=whole)
    if answer.before is None and answer.after is None:
        print(
            f"{record} holds no decision about it: the engine's own filters left no host, or it did not ask"
        )
    _print_events(answer)


def _print_events(answer: DecisionsAtDocument) -> None:
    from ovirt_placement.answers.decisions.at_time import cut_text, earlier_text, names_one_for_all

    if answer.events:
        print()
    for event in answer.events:
        print(f"The engine, {event.time}: {event.sentence}")
        if names_one_for_all(event.sentence):
            print(
                "  These are the engine's words: it says the same of several hosts under the name of one, and"
                f" names no group. What our rules say now: ovirt-placement why {answer.vm.name}"
            )
    if answer.earlier is not None:
        print(f"\n{earlier_text(answer.earlier)}")
    if answer.events_error is not None:
        print(f"The engine's events are not known: {answer.events_error}")
    if answer.events_since is not None:
        print(cut_text(answer.events_since))


def _print_attempt(title: str, attempt: Attempt, *, whole: bool) -> None:
    from ovirt_placement.answers.decisions.at_time import distance, not_asked_lines

    print(f"\n{title}, {distance(attempt.after_seconds)}:")
    _show(attempt.filters, whole=whole)
    if attempt.weights is not None:
        _show(attempt.weights, whole=whole)
    for line in not_asked_lines(attempt.not_asked, whole=whole):
        print(line)
    for way in attempt.ways:
        print(f"It could have started {way.sentence}")


def _show(decision: PastDecision, *, whole: bool) -> None:
    print("\n".join(decision_lines(decision)))
    if columns := decision_headers(decision):
        show(decision_rows(decision), columns, whole=whole)
    print()


def _record(args: argparse.Namespace) -> Path:
    file: Path = args.decisions or record_of(config.load(args.config).engine.name)
    return file


def _events(args: argparse.Namespace) -> tuple[LatestEvents, str | None]:
    """What the engine says of refusals, or why it is not known."""
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import connect
    from ovirt_placement.engine.reading.events import LatestEvents, find_refusals

    if args.state is not None:
        return LatestEvents((), None), "a state file has none"
    try:
        with connect(config.load(args.config).engine) as connection:
            return find_refusals(connection), None
    except UserError as error:
        return LatestEvents((), None), str(error)


def _moment(text: str) -> Moment:
    # The engine's events take long to load: not for `--help`.
    from ovirt_placement.answers.decisions.at_time import read_moment

    try:
        return read_moment(text, time.time())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _since(text: str) -> float:
    """A moment, in seconds since the epoch: so long ago, or as that of `--at`."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNIT_SECONDS and number.isdecimal():
        return time.time() - float(number) * _UNIT_SECONDS[unit]
    return _moment(text).seconds
