"""What `ovirt-placement setup` says of what it did, to people and to programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ovirt_placement.answers.documents.setup import PolicyChange, SentRequest, SetupDocument
from ovirt_placement.cli.question import show_json

if TYPE_CHECKING:
    from ovirt_placement.cli.setup.carrying_out import Outcome


def report(args: argparse.Namespace, outcomes: Sequence[Outcome], notes: Sequence[str]) -> None:
    """Tell of one policy, or with `--all-policies` of each."""
    if args.json:
        policies = tuple(_described(one) for one in outcomes)
        show_json(SetupDocument(sent=not args.dry_run, policies=policies, notes=tuple(notes)))
        return
    for one in outcomes:
        _print(one, args)
    for note in notes:
        print(f"note: {note}")
    if not outcomes:
        print("No policy has anything of setup." if args.undo else "No cluster uses a policy.")
    elif args.dry_run and any(one.plan.requests for one in outcomes):
        print("Nothing was sent (--dry-run).")


def _described(one: Outcome) -> PolicyChange:
    requests = (
        SentRequest(each.what, each.method, each.path, each.body.decode()) for each in one.plan.requests
    )
    return PolicyChange(one.policy, tuple(requests), tuple(one.plan.notes), one.error)


def _print(one: Outcome, args: argparse.Namespace) -> None:
    if one.error is not None:
        return  # it is reported at the end, with all others
    if args.all_policies and one.plan.requests:
        print(f"policy {one.policy}:")
    for request in one.plan.requests:
        print(request.what)
        if args.dry_run:
            print(f"    {request.method} {request.path}")
            if request.body:
                print(f"    {request.body.decode()}")
    for note in one.plan.notes:
        print(f"note: {note}")
    if not one.plan.requests:
        state = "has nothing of setup" if args.undo else "is set up"
        print(f"The policy {one.policy} {state}; nothing to change.")
