"""`ovirt-enforcer approve`, `refuse`, `apply` and `undo`: what becomes of a plan on a person's word."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ovirt_enforcer.orders import check_orders, obstacle, order, settings_in_force
from ovirt_enforcer.plans import PlansBack
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.answers.document import DRY_RUN
from ovirt_placement.answers.orders import ApprovalChangeDocument, approval_change, refusal_change
from ovirt_placement.answers.plans.plan import plan_record
from ovirt_placement.answers.plans.reading import NoPlan, plan_of
from ovirt_placement.answers.plans.text import step_text, text
from ovirt_placement.cli.arguments import add_change, add_command, add_config, add_json
from ovirt_placement.cli.asking import PATIENCE_SECONDS, show_json
from ovirt_placement.cli.changing import login_name, opened, stored
from ovirt_placement.config import Config
from ovirt_placement.model.amounts import counted
from ovirt_placement.store.approvals import ApprovalStore, WaitingPlan
from ovirt_placement.store.history import HistoryStore, PlanRecord
from ovirt_service import files
from ovirt_service.errors import UserError
from ovirt_service.legible import unbroken

APPROVE = """\
Approve a plan that waits in mode approve: this plan only, for approval_hours.
"""
APPROVE_EXAMPLES = """\
  ovirt-enforcer approve --list
  ovirt-enforcer approve 4f2a91c07d3e
"""


def add_approve(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "approve", summary, APPROVE, _run_approve, APPROVE_EXAMPLES)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("plan", nargs="?", metavar="PLAN", help="the id of the plan, as --list prints it")
    what.add_argument("--list", action="store_true", help="list the plans that wait")
    add_change(parser)
    add_config(parser)


def _run_approve(args: argparse.Namespace) -> int:
    if args.list:
        return _list_waiting(args)
    config = configuration.load(args.config)
    hours = settings_in_force(config)["approval_hours"]  # a store that is away says so before all else
    with opened(ApprovalStore, args, create=not args.dry_run) as store:
        before = store.approvals()
        waiting = store.waiting()
        if args.dry_run:
            approved = next((one for one in waiting if one.plan == args.plan), None)
        else:
            approved = store.approve(args.plan, set_by=login_name())
    if approved is None:
        raise UserError(_why_not_waiting(args.plan, waiting))
    if args.json:
        show_json(approval_change(before, {approved.cluster: approved.plan}, approved.text, args.dry_run))
    else:
        print(approved.text)
        print(DRY_RUN if args.dry_run else _said(config, hours, approved.cluster))
    return 0


def _said(config: Config, hours: float, cluster: str) -> str:
    """For how long it counts, and what keeps the enforcer from it."""
    lasts = f"Approved of, for {hours:g} h, or until the cluster needs another plan."
    why = obstacle(config, Mode.APPROVE, cluster)
    return lasts if why is None else f"{lasts}\nIt is not carried out yet: {why}."


def _list_waiting(args: argparse.Namespace) -> int:
    waiting = stored(ApprovalStore, args, ApprovalStore.waiting, ())
    if args.json:
        show_json(waiting)
    elif waiting:
        print("\n".join(f"Plan {one.plan}\n{one.text}" for one in waiting))
    else:
        print("No plan waits.")
    return 0


def _why_not_waiting(plan: str, waiting: tuple[WaitingPlan, ...]) -> str:
    """A plan that does not wait was approved of already, or its cluster has changed since it was made."""
    others = ", ".join(one.plan for one in waiting)
    return f"plan {plan} does not wait, or not any more; {f'these do: {others}' if others else 'none does'}"


REFUSE = """\
Refuse a plan that waits in mode approve: it is not offered again for approval_hours, unless its cluster needs
another plan.
"""
REFUSE_EXAMPLES = """\
  ovirt-enforcer refuse 4f2a91c07d3e --reason "backup tonight"
"""


def add_refuse(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "refuse", summary, REFUSE, _run_refuse, REFUSE_EXAMPLES)
    parser.add_argument("plan", metavar="PLAN", help="the id of the plan, as approve --list prints it")
    parser.add_argument("--reason", metavar="TEXT", default="", help="shown by history")
    add_change(parser)
    add_config(parser)


def _run_refuse(args: argparse.Namespace) -> int:
    hours = settings_in_force(configuration.load(args.config))["approval_hours"]
    with opened(ApprovalStore, args, create=not args.dry_run) as store:
        waiting = store.waiting()
        if args.dry_run:
            refused = next((one for one in waiting if one.plan == args.plan), None)
        else:
            refused = store.refuse(args.plan, set_by=login_name(), reason=unbroken(args.reason.strip()))
    if refused is None:
        raise UserError(_why_not_waiting(args.plan, waiting))
    if args.json:
        show_json(refusal_change(refused, args.dry_run))
    else:
        print(refused.text)
        lasts = f"Refused: it is not offered again for {hours:g} h, unless the cluster needs another."
        print(DRY_RUN if args.dry_run else lasts)
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


def add_apply(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
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
        _report(
            args, approval_change((), {}, "", args.dry_run), "Nothing is to be done: no cluster has a step."
        )
        return 0
    config = configuration.load(args.config)
    settings = config.section("enforcer", EnforcerSettings)
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=PATIENCE_SECONDS)
    check_orders(config, snapshot, plans)
    reads = "\n".join(text(plan_record(plan, snapshot)) for plan in plans)
    if not args.json:
        print(reads)
    if not (args.yes or args.dry_run) and not _is_meant(args):
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
    _report(args, approval_change(before, orders, reads, args.dry_run), said)
    return 0


def _report(args: argparse.Namespace, answer: ApprovalChangeDocument, said: str) -> None:
    if args.json:
        show_json(answer)
    else:
        print(said)


def _document(file: Path) -> Mapping[str, Any]:
    """What a file holds, with its clusters."""
    try:
        document: Any = json.loads(_content(file))
    except RecursionError:
        raise UserError(f"{file}: cannot be read: nested too deeply") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None
    clusters = document.get("clusters") if isinstance(document, dict) else None
    if not isinstance(clusters, list) or not all(isinstance(one, dict) for one in clusters):
        raise NoPlan(f"{file}: it is not what ovirt-enforcer plan --json prints")
    whole: Mapping[str, Any] = document
    return whole


def _content(file: Path) -> bytes:
    if str(file) == "-":
        return files.read_stream(sys.stdin.buffer, "standard input", _MOST_MIB)
    return files.read_bounded(file, _MOST_MIB)


def _is_meant(args: argparse.Namespace) -> bool:
    if args.json or not sys.stdin.isatty():
        raise UserError("say --yes to have it carried out")
    return input("Carry it out? [y/N] ").strip().lower() in {"y", "yes"}


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


def add_undo(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "undo", summary, UNDO, _run_undo, UNDO_EXAMPLES)
    parser.add_argument("plan", metavar="PLAN", help="its id, or the beginning of it")
    add_config(parser)
    add_json(parser)


def _run_undo(args: argparse.Namespace) -> int:
    # The SDK takes long to load: not for other subcommands.
    from ovirt_enforcer.engine_state import moved_by, way_back

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
        raise UserError(f'no plan "{args.plan}" is recorded: ovirt-enforcer history lists the plans')
    if len(found) > 1:
        raise UserError(f'plan "{args.plan}" is ambiguous: say {" or ".join(one.id for one in found)}')
    return found[0]


def _undo_lines(found: PlansBack, *, begun: bool) -> Iterator[str]:
    (plan,) = found.clusters
    if plan.steps:
        count = f"{counted(plan.migrations, 'migration')}"
        yield f"Cluster {plan.cluster.name}: {count} to undo plan {found.undoes}"
    elif not begun:
        yield f"Nothing can be undone yet: no migration of plan {found.undoes} has ended."
    elif found.kept:
        yield f"Cluster {plan.cluster.name}: nothing of plan {found.undoes} can be undone now"
    else:
        yield f"Nothing is left to undo: the VMs of plan {found.undoes} are where they were before it."
    yield from (f"  {number}. {step_text(step)}" for number, step in enumerate(plan.steps, 1))
    yield from (f"  {one.name} stays: {one.because}" for one in found.kept)
