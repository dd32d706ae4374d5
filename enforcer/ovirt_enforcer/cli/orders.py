"""`approve`, `refuse`, `apply`, `undo`, `pause` and `resume`: what becomes of plans on a person's word."""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from ovirt_enforcer.orders import check_orders, obstacle, order, settings_in_force
from ovirt_enforcer.plans import PlansBack
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import config as configuration
from ovirt_placement.answers.document import DRY_RUN, Table, find
from ovirt_placement.answers.orders import PausesChangeDocument, approval_change, refusal_change
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import NoPlan, plan_of, step_text, text
from ovirt_placement.cli.changes import login_name, opened, show_change, stored
from ovirt_placement.cli.questions import (
    PATIENCE_SECONDS,
    add_change,
    add_command,
    add_config,
    add_json,
    show_json,
    show_text,
)
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model.names import counted
from ovirt_placement.store.enforcer.history import HistoryStore, PlanRecord
from ovirt_placement.store.orders import ALL_CLUSTERS, Approval, ApprovalStore, Pause, PauseStore, WaitingPlan
from ovirt_service import files
from ovirt_service.errors import UserError
from ovirt_service.text import say, unbroken

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

APPROVE = """\
Approve a plan that waits in mode approve: this plan only, for approval_hours.
"""
APPROVE_EXAMPLES = """\
  ovirt-enforcer approve --list
  ovirt-enforcer approve 4f2a91c07d3e
"""
REFUSE = """\
Refuse a plan that waits in mode approve: it is not offered again for approval_hours, unless its cluster needs
another plan.
"""
REFUSE_EXAMPLES = """\
  ovirt-enforcer refuse 4f2a91c07d3e --reason "backup tonight"
"""


def add_approve(commands: _Commands, summary: str) -> None:
    parser = add_command(commands, "approve", summary, APPROVE, _run_approve, APPROVE_EXAMPLES)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("plan", nargs="?", metavar="PLAN", help="the id of the plan, as --list prints it")
    what.add_argument("--list", action="store_true", help="list the plans that wait")
    add_change(parser)
    add_config(parser)


def add_refuse(commands: _Commands, summary: str) -> None:
    parser = add_command(commands, "refuse", summary, REFUSE, _run_refuse, REFUSE_EXAMPLES)
    parser.add_argument("plan", metavar="PLAN", help="the id of the plan, as approve --list prints it")
    parser.add_argument("--reason", metavar="TEXT", default="", help="shown by history")
    add_change(parser)
    add_config(parser)


def _run_approve(args: argparse.Namespace) -> int:
    if args.list:
        return _list_waiting(args)
    hours, before, plan = _decide(args, lambda store: store.approve(args.plan, set_by=login_name()))
    lasts = f"Approved of, for {hours:g} h, or until the cluster needs another plan."
    if not (args.dry_run or args.json):
        why = obstacle(configuration.load(args.config), Mode.APPROVE, plan.cluster)
        lasts += "" if why is None else f"\nIt is not carried out yet: {why}."
    answer = approval_change(before, {plan.cluster: plan.plan}, plan.text, args.dry_run)
    show_change(args, answer, [plan.text, DRY_RUN if args.dry_run else lasts])
    return 0


def _run_refuse(args: argparse.Namespace) -> int:
    reason = unbroken(args.reason.strip())
    hours, _, plan = _decide(args, lambda store: store.refuse(args.plan, set_by=login_name(), reason=reason))
    done = f"Refused: it is not offered again for {hours:g} h, unless the cluster needs another."
    show_change(args, refusal_change(plan, args.dry_run), [plan.text, DRY_RUN if args.dry_run else done])
    return 0


def _decide(
    args: argparse.Namespace, decide: Callable[[ApprovalStore], WaitingPlan | None]
) -> tuple[float, tuple[Approval, ...], WaitingPlan]:
    """Approve or refuse; for how many hours that counts, what was approved before, and the plan."""
    # A store that is away says so before all else.
    hours = settings_in_force(configuration.load(args.config))["approval_hours"]
    with opened(ApprovalStore, args, create=not args.dry_run) as store:
        before, waiting = store.approvals(), store.waiting()
        named = next((one for one in waiting if one.plan == args.plan), None)
        decided = named if args.dry_run else decide(store)
    if decided is None:  # it was approved of already, or its cluster has changed since it was made
        others = ", ".join(one.plan for one in waiting)
        these = f"these do: {others}" if others else "none does"
        raise UserError(f"plan {args.plan} does not wait, or not any more; {these}")
    return hours, before, decided


def _list_waiting(args: argparse.Namespace) -> int:
    waiting = stored(ApprovalStore, args, ApprovalStore.waiting, ())
    if args.json:
        show_json(waiting)
    else:
        print("\n".join(f"Plan {one.plan}\n{one.text}" for one in waiting) or "No plan waits.")
    return 0


#: A plan of a thousand migrations has 2 MiB.
_MOST_MIB = 64
APPLY = """\
Ask the running enforcer to execute this plan instead of its own; gates still apply. The mode must be approve
or enforce. Nothing is done if the cluster has changed since.
"""
APPLY_EXAMPLES = """\
  ovirt-enforcer apply plan.json --yes     # from a script: asks nothing
"""


def add_apply(commands: _Commands, summary: str) -> None:
    parser = add_command(commands, "apply", summary, APPLY, _run_apply, APPLY_EXAMPLES)
    parser.add_argument("file", type=Path, metavar="PLAN.json", help="what plan --json has printed, or -")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_change(parser)
    add_config(parser)


def _run_apply(args: argparse.Namespace) -> int:
    whole = _document(args.file)
    documents = [document for document in whole["clusters"] if document.get("steps")]
    plans = [plan_of(document) for document in documents]
    if not plans:
        nothing = "Nothing is to be done: no cluster has a step."
        show_change(args, approval_change((), {}, "", args.dry_run), [nothing])
        return 0
    config = configuration.load(args.config)
    settings = config.section("enforcer", EnforcerSettings)
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=PATIENCE_SECONDS)
    check_orders(config, snapshot, plans)
    reads = "\n".join(text(plan_record(plan, snapshot)) for plan in plans)
    if not args.json:
        print(reads)
    if not (args.yes or args.dry_run):
        if args.json or not sys.stdin.isatty():
            raise UserError("say --yes to have it carried out")
        if input("Carry it out? [y/N] ").strip().lower() not in {"y", "yes"}:
            return 1
    with opened(ApprovalStore, args, create=not args.dry_run) as approvals:
        before = approvals.approvals()
    undoes = whole.get("undoes")
    if not args.dry_run:
        undone = undoes if isinstance(undoes, str) else None
        order(config, documents, set_by=login_name(), undoes=undone)
    orders = {plan.cluster: plan.id for plan in plans}
    begins = f"The enforcer begins within {settings.interval_seconds:g} s, as far as its gates let it."
    said = DRY_RUN if args.dry_run else begins
    show_change(args, approval_change(before, orders, reads, args.dry_run), [said])
    return 0


def _document(file: Path) -> Mapping[str, Any]:
    try:
        if str(file) == "-":
            content = files.read_stream(sys.stdin.buffer, "standard input", _MOST_MIB)
        else:
            content = files.read_bounded(file, _MOST_MIB)
        document: Any = json.loads(content)
    except RecursionError:
        raise UserError(f"{file}: cannot be read: nested too deeply") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None
    clusters = document.get("clusters") if isinstance(document, dict) else None
    if not isinstance(clusters, list) or not all(isinstance(one, dict) for one in clusters):
        raise NoPlan(f"{file}: it is not what ovirt-enforcer plan --json prints")
    whole: Mapping[str, Any] = document
    return whole


#: Exit statuses, besides 0 where nothing can be undone and 2 for a mistake.
UNDOES_ALL = 3
SOMETHING_STAYS = 4
UNDO = """\
Show which migrations would undo a plan; migrate nothing. `ovirt-enforcer apply` executes what --json prints.
Exit status: 0 there is nothing to undo, 3 the migrations undo all, 4 something stays as it is.
"""
UNDO_EXAMPLES = """\
  ovirt-enforcer undo 4f2a --json > back.json
"""


def add_undo(commands: _Commands, summary: str) -> None:
    parser = add_command(commands, "undo", summary, UNDO, _run_undo, UNDO_EXAMPLES)
    parser.add_argument("plan", metavar="PLAN", help="its id, or the beginning of it")
    add_config(parser)
    add_json(parser)


def _run_undo(args: argparse.Namespace) -> int:
    # The SDK takes long to load: not for other subcommands.
    from ovirt_enforcer.memory import moved_by, way_back

    record = _plan_record(args)
    config = configuration.load(args.config)
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=PATIENCE_SECONDS)
    found = way_back(config, snapshot, record)
    if args.json:
        show_json(found)
    else:
        print("\n".join(_undo_lines(found, begun=bool(moved_by(record)))))
    if found.kept:
        return SOMETHING_STAYS
    return UNDOES_ALL if found.clusters[0].steps else 0


def _plan_record(args: argparse.Namespace) -> PlanRecord:
    with opened(HistoryStore, args, create=False) as store:
        found = store.plans_named(args.plan)
    if not found:
        raise UserError(f'no plan "{args.plan}" is recorded: ovirt-enforcer history --plans lists them')
    if len(found) > 1:
        raise UserError(f'plan "{args.plan}" is ambiguous: say {" or ".join(one.id for one in found)}')
    return found[0]


def _undo_lines(found: PlansBack, *, begun: bool) -> Iterator[str]:
    (plan,) = found.clusters
    if plan.steps:
        count = f"{counted(plan.migrations, 'migration')}"
        yield f"Cluster {plan.cluster.name}: {count} to undo plan {found.undoes}"
    elif not begun:
        yield f"Nothing can be undone yet: plan {found.undoes} has moved no VM."
    elif found.kept:
        yield f"Cluster {plan.cluster.name}: nothing of plan {found.undoes} can be undone now"
    else:
        yield f"Nothing is left to undo: the VMs of plan {found.undoes} are where they were before it."
    yield from (f"  {number}. {step_text(step)}" for number, step in enumerate(plan.steps, 1))
    yield from (f"  {one.name} stays: {one.because}" for one in found.kept)


#: Ten years; for longer there is a pause without an end.
_MOST_HOURS: Final = 87_600.0
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


def add_pause(commands: _Commands, summary: str) -> None:
    parser = add_command(commands, "pause", summary, PAUSE, _run_pause, PAUSE_EXAMPLES)
    parser.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")
    parser.add_argument("--reason", metavar="TEXT", default="", help="shown by status and history")
    parser.add_argument("--hours", type=_hours, metavar="N", help="for N hours; else until resume")
    parser.add_argument("--list", action="store_true", help="list the pauses, and pause nothing")
    add_change(parser)
    add_config(parser)


def add_resume(commands: _Commands, summary: str) -> None:
    parser = add_command(commands, "resume", summary, RESUME, _run_resume, RESUME_EXAMPLES)
    parser.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")
    add_change(parser)
    add_config(parser)


def _run_pause(args: argparse.Namespace) -> int:
    before = stored(PauseStore, args, PauseStore.pauses, ())
    if args.list:
        return _list_pauses(args, before)
    (cluster, name), reason, set_by = _place(args, ()), unbroken(args.reason), login_name()
    seconds = None if args.hours is None else args.hours * 3600.0
    if args.dry_run:
        meant = Pause(
            cluster=cluster, cluster_name=name, reason=reason, set_by=set_by, set_at=0.0, until=seconds
        )
        after = (*(one for one in before if one.cluster != cluster), meant)
    else:
        with opened(PauseStore, args) as store:
            store.pause(cluster, cluster_name=name, reason=reason, set_by=set_by, seconds=seconds)
            after = store.pauses()
    resume = "ovirt-enforcer resume" + (f" --cluster {shlex.quote(name)}" if cluster else "")
    ends = f"until {resume}" if args.hours is None else f"for {args.hours:g} h"
    said = f"Paused in {_place_text(name)}, {ends}. What is under way already goes on."
    _show_pauses(args, before, after, [said])
    return 0


def _run_resume(args: argparse.Namespace) -> int:
    before = stored(PauseStore, args, PauseStore.pauses, ())
    cluster, name = _place(args, before)
    lifted = next((one for one in before if one.cluster == cluster), None)
    after = tuple(one for one in before if one.cluster != cluster)
    if not args.dry_run:
        with opened(PauseStore, args) as store:
            lifted = store.resume(cluster, cluster_name=name, set_by=login_name())
            after = store.pauses()
    if lifted is None:
        said = f"No pause of {_place_text(name)} was in force. The failure counter is reset."
    else:
        moment = _moment(lifted.set_at)
        said = f"Resumed in {_place_text(name)}: {lifted.set_by} had paused it at {moment}."
    still = (f"Still paused: {_place_text(pause.cluster_name)}." for pause in after)
    _show_pauses(args, before, after, [said, *still], changed=lifted is not None)
    return 0


def _show_pauses(
    args: argparse.Namespace,
    before: tuple[Pause, ...],
    after: tuple[Pause, ...],
    lines: list[str],
    *,
    changed: bool = True,
) -> None:
    answer = PausesChangeDocument(changed=changed, dry_run=args.dry_run, before=before, after=after)
    show_change(args, answer, [*lines, DRY_RUN] if args.dry_run else lines)


def _list_pauses(args: argparse.Namespace, pauses: tuple[Pause, ...]) -> int:
    if args.json:
        show_json(pauses)
    elif pauses:
        rows = []
        for pause in pauses:
            until = "resume" if pause.until is None else _moment(pause.until)
            where, since = _place_text(pause.cluster_name), _moment(pause.set_at)
            rows.append((where, pause.set_by, since, until, pause.reason))
        show_text([Table(rows, ("paused", "by", "since", "until", "reason"))])
    else:
        print("Nothing is paused.")
    return 0


def _place(args: argparse.Namespace, pauses: tuple[Pause, ...]) -> tuple[str, str]:
    """Id and name of the cluster named, or of all. One that is gone or renamed can be resumed, too.

    Where the engine cannot say which clusters there are, a word is taken for one.
    """
    if args.cluster is None:
        return ALL_CLUSTERS, ""
    for pause in pauses:
        if pause.cluster and args.cluster in (pause.cluster, pause.cluster_name):
            return pause.cluster, pause.cluster_name
    try:
        snapshot = inventory.snapshot(config=configuration.load(args.config), max_age=None)
    except UserError as error:
        say(f'"{args.cluster}" is taken for the name or id of a cluster: {error}')
        return args.cluster, args.cluster
    cluster = find(args.cluster, "cluster", snapshot.clusters)
    return cluster.id, cluster.name


def _place_text(name: str) -> str:
    return f"cluster {name}" if name else "all clusters"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")


def _hours(given: str) -> float:
    try:
        hours = float(given)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= _MOST_HOURS:
        raise argparse.ArgumentTypeError(
            f'"{given}": a number of hours greater than 0, and at most {_MOST_HOURS:.0f}'
        )
    return hours
