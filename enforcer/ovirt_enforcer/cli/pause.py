"""`ovirt-enforcer pause` and `resume`: let nothing be migrated any more, at once, and take that back."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.answers.document import DRY_RUN, find
from ovirt_placement.answers.orders import PausesChangeDocument
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.asking import show, show_json
from ovirt_placement.cli.changing import login_name, opened, stored
from ovirt_placement.store.pauses import ALL_CLUSTERS, Pause, PauseStore
from ovirt_service.errors import UserError
from ovirt_service.legible import unbroken
from ovirt_service.screen import say

_HOUR_SECONDS: Final = 3600.0
#: Ten years; for longer there is a pause without an end.
_MOST_HOURS: Final = 87_600.0


class _Where(NamedTuple):
    """A cluster by id and name, or all of them."""

    cluster: str
    name: str

    def __str__(self) -> str:
        return f"cluster {self.name}" if self.cluster else "all clusters"


_EVERYWHERE: Final = _Where(ALL_CLUSTERS, "")


PAUSE = """\
Begin no further migration, in one cluster or in all. Migrations under way continue.
"""

PAUSE_EXAMPLES = """\
  ovirt-enforcer pause --hours 2 --reason "storage upgrade"
  ovirt-enforcer pause --list
"""

RESUME = """\
End a pause, and reset the failure counter of the breaker.
"""

RESUME_EXAMPLES = """\
  ovirt-enforcer resume --cluster blue
"""


def add_pause(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    pausing = add_command(commands, "pause", summary, PAUSE, _run_pause, PAUSE_EXAMPLES)
    pausing.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")
    pausing.add_argument("--reason", metavar="TEXT", default="", help="shown by status and history")
    pausing.add_argument("--hours", type=_hours, metavar="N", help="for N hours; else until resume")
    pausing.add_argument("--list", action="store_true", help="list the pauses, and pause nothing")
    add_change(pausing)
    add_config(pausing)


def add_resume(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    resuming = add_command(commands, "resume", summary, RESUME, _run_resume, RESUME_EXAMPLES)
    resuming.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")
    add_change(resuming)
    add_config(resuming)


def _run_pause(args: argparse.Namespace) -> int:
    if args.list:
        return _list(args)
    where = _EVERYWHERE if args.cluster is None else _find_cluster(args)
    before = _in_force(args)
    seconds = None if args.hours is None else args.hours * _HOUR_SECONDS
    if args.dry_run:
        meant = Pause(
            cluster=where.cluster,
            cluster_name=where.name,
            reason=unbroken(args.reason),
            set_by=login_name(),
            set_at=0.0,
            until=seconds,
        )
        after = (*(one for one in before if one.cluster != where.cluster), meant)
    else:
        with opened(PauseStore, args) as store:
            store.pause(
                where.cluster,
                cluster_name=where.name,
                reason=unbroken(args.reason),
                set_by=login_name(),
                seconds=seconds,
            )
            after = store.pauses()
    resume = "ovirt-enforcer resume" + (
        "" if args.cluster is None else f" --cluster {shlex.quote(where.name)}"
    )
    ends = f"until {resume}" if args.hours is None else f"for {args.hours:g} h"
    said = f"Paused in {where}, {ends}. What is under way already goes on."
    _report(args, PausesChangeDocument(changed=True, dry_run=args.dry_run, before=before, after=after), said)
    return 0


def _run_resume(args: argparse.Namespace) -> int:
    if args.dry_run:
        before = _in_force(args)
        where = _EVERYWHERE if args.cluster is None else _paused(args.cluster, before) or _find_cluster(args)
        left = tuple(one for one in before if one.cluster != where.cluster)
        lifted = next((one for one in before if one.cluster == where.cluster), None)
    else:
        with opened(PauseStore, args) as store:
            before = store.pauses()
            where = (
                _EVERYWHERE if args.cluster is None else _paused(args.cluster, before) or _find_cluster(args)
            )
            lifted = store.resume(where.cluster, cluster_name=where.name, set_by=login_name())
            left = store.pauses()
    said = [
        f"No pause of {where} was in force. The failure counter is reset."
        if lifted is None
        else f"Resumed in {where}: {lifted.set_by} had paused it at {_time(lifted.set_at)}.",
        *(f"Still paused: {_where(pause)}." for pause in left),
    ]
    changed = lifted is not None
    answer = PausesChangeDocument(changed=changed, dry_run=args.dry_run, before=before, after=left)
    _report(args, answer, "\n".join(said))
    return 0


def _report(args: argparse.Namespace, answer: PausesChangeDocument, said: str) -> None:
    if args.json:
        show_json(answer)
    else:
        print(said)
        if answer.dry_run:
            print(DRY_RUN)


def _in_force(args: argparse.Namespace) -> tuple[Pause, ...]:
    return stored(PauseStore, args, PauseStore.pauses, ())


def _list(args: argparse.Namespace) -> int:
    pauses = _in_force(args)
    if args.json:
        show_json(pauses)
    elif pauses:
        show([_row(pause) for pause in pauses], ("paused", "by", "since", "until", "reason"))
    else:
        print("Nothing is paused.")
    return 0


def _find_cluster(args: argparse.Namespace) -> _Where:
    """The cluster named. Where the engine cannot say which there are, it is taken at its word."""
    try:
        snapshot = inventory.snapshot(config=configuration.load(args.config), max_age=None)
    except UserError as error:
        say(f'"{args.cluster}" is taken for the name or id of a cluster: {error}')
        return _Where(args.cluster, args.cluster)
    cluster = find(args.cluster, "cluster", snapshot.clusters)
    return _Where(cluster.id, cluster.name)


def _paused(word: str, pauses: Iterable[Pause]) -> _Where | None:
    """The cluster of a pause, which ends whatever has become of its cluster."""
    found = (pause for pause in pauses if pause.cluster and word in (pause.cluster, pause.cluster_name))
    pause = next(found, None)
    return None if pause is None else _Where(pause.cluster, pause.cluster_name)


def _row(pause: Pause) -> tuple[str, ...]:
    until = "resume" if pause.until is None else _time(pause.until)
    return _where(pause), pause.set_by, _time(pause.set_at), until, pause.reason


def _where(pause: Pause) -> str:
    return str(_Where(pause.cluster, pause.cluster_name))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= _MOST_HOURS:
        raise argparse.ArgumentTypeError(
            f'"{text}": a number of hours greater than 0, and at most {_MOST_HOURS:.0f}'
        )
    return hours
