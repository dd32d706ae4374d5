"""`ovirt-placement groups lost`: what VMs were members of before they changed their cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ovirt_placement.answers.document import find
from ovirt_placement.answers.groups.change import (
    LOSS_HEADERS,
    GroupsForgottenDocument,
    GroupsLostDocument,
    groups_lost,
    loss_rows,
    losses,
)
from ovirt_placement.cli.question import show, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.model.names import Named
from ovirt_placement.store.database import StoreUnmade
from ovirt_placement.store.memberships import LostMembership, MembershipStore
from ovirt_service.errors import UserError


def run(args: argparse.Namespace) -> int:
    if args.dry_run and args.forget is None:
        raise UserError("--dry-run goes with --forget: without it nothing is changed")
    with opened(MembershipStore, args, create=False) as store:
        entries = before = _read(store)
        if args.forget is not None:
            known = {one.vm: Named(one.vm, one.vm_name) for one in entries}
            vm = find(args.forget, "VM that lost a membership", known.values())
            if not args.dry_run:
                store.forget_lost(vm.id)
            entries = tuple(one for one in entries if one.vm != vm.id)
    if args.json and args.forget is not None:
        show_json(_forgotten(args, before, vm.id))
    else:
        _show(args, groups_lost(entries))
    return 0


def _forgotten(
    args: argparse.Namespace, before: Iterable[LostMembership], vm: str
) -> GroupsForgottenDocument:
    gone = losses(one for one in before if one.vm == vm)
    return GroupsForgottenDocument(changed=True, dry_run=args.dry_run, before=gone, after=())


def _show(args: argparse.Namespace, answer: GroupsLostDocument) -> None:
    if args.json:
        show_json(answer)
    elif answer.losses:
        show(loss_rows(answer), LOSS_HEADERS)
    else:
        print("Nothing is lost.")


def _read(store: MembershipStore) -> tuple[LostMembership, ...]:
    """A store that nobody has written to holds nothing."""
    try:
        return tuple(store.lost())
    except StoreUnmade:
        return ()
