"""`ovirt-placement groups lost`: what VMs were members of before they changed their cluster."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.documents.groups import GroupsLostDocument
from ovirt_placement.answers.finding import find
from ovirt_placement.answers.lost_memberships import Loss, losses, row
from ovirt_placement.cli.question import show, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.store.database import StoreUnmade
from ovirt_placement.store.memberships import MembershipStore


def run(args: argparse.Namespace) -> int:
    with opened(MembershipStore, args, create=False) as store:
        found = _read(store)
        if args.forget is not None:
            vm = find(args.forget, "VM that lost a membership", {one.vm.id: one.vm for one in found}.values())
            store.forget_lost(vm.id)
            found = tuple(one for one in found if one.vm.id != vm.id)
    if args.json:
        show_json(GroupsLostDocument(losses=found))
    elif found:
        show([row(one) for one in found], ("VM", "former cluster", "groups", "labels", "since"))
    else:
        print("Nothing is lost.")
    return 0


def _read(store: MembershipStore) -> tuple[Loss, ...]:
    """A store that nobody has written to holds nothing."""
    try:
        return losses(store.lost())
    except StoreUnmade:
        return ()
