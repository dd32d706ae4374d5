"""`ovirt-placement groups lost`: what VMs were members of before they changed their cluster."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.finding import find
from ovirt_placement.answers.groups.lost import HEADERS, groups_lost, rows
from ovirt_placement.cli.question import show, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.model.names import Named
from ovirt_placement.store.database import StoreUnmade
from ovirt_placement.store.memberships import LostMembership, MembershipStore


def run(args: argparse.Namespace) -> int:
    with opened(MembershipStore, args, create=False) as store:
        entries = _read(store)
        if args.forget is not None:
            known = {one.vm: Named(one.vm, one.vm_name) for one in entries}
            vm = find(args.forget, "VM that lost a membership", known.values())
            store.forget_lost(vm.id)
            entries = tuple(one for one in entries if one.vm != vm.id)
    answer = groups_lost(entries)
    if args.json:
        show_json(answer)
    elif answer.losses:
        show(rows(answer), HEADERS)
    else:
        print("Nothing is lost.")
    return 0


def _read(store: MembershipStore) -> tuple[LostMembership, ...]:
    """A store that nobody has written to holds nothing."""
    try:
        return tuple(store.lost())
    except StoreUnmade:
        return ()
