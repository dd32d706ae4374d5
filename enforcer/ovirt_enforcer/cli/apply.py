"""`ovirt-enforcer apply`: have the enforcer carry out a plan that was looked at, if it still fits."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ovirt_enforcer.on_request.orders import check_orders, order
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.answers.approvals import ApprovalChangeDocument, approval_change
from ovirt_placement.answers.plans.reading import NoPlan, plan_of
from ovirt_placement.answers.plans.records import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.cli.arguments import add_change, add_command, add_config
from ovirt_placement.cli.login import login_name
from ovirt_placement.cli.question import PATIENCE_SECONDS, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.store.approvals import ApprovalStore
from ovirt_service import bounded_file
from ovirt_service.errors import UserError

#: A plan of a thousand migrations has 2 MiB.
_MOST_MIB = 64

DESCRIPTION = """\
Ask the running enforcer to execute this plan instead of its own; gates still apply. The mode must be approve
or enforce. Nothing is done if the cluster has changed since.
"""

EXAMPLES = """\
  ovirt-enforcer apply plan.json --yes     # from a script: asks nothing
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "apply", summary, DESCRIPTION, run, EXAMPLES)
    parser.add_argument("file", type=Path, metavar="PLAN.json", help="what plan --json has printed, or -")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add_change(parser)
    add_config(parser)


def run(args: argparse.Namespace) -> int:
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
    said = "Nothing was written: this was a dry run." if args.dry_run else begins
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
        return bounded_file.read_stream(sys.stdin.buffer, "standard input", _MOST_MIB)
    return bounded_file.read(file, _MOST_MIB)


def _is_meant(args: argparse.Namespace) -> bool:
    if args.json or not sys.stdin.isatty():
        raise UserError("say --yes to have it carried out")
    return input("Carry it out? [y/N] ").strip().lower() in {"y", "yes"}
