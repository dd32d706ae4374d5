"""`ovirt-placement groups`: lists affinity groups, adds, changes and removes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ovirt_placement.answers.document import find, table
from ovirt_placement.answers.groups import MEMBERS, polarity_of, table_of
from ovirt_placement.answers.orders import LOSS_COLUMNS, GroupsForgottenDocument, GroupsLostDocument, losses
from ovirt_placement.cli import group_changes as change
from ovirt_placement.cli.changes import add_writing, connected, opened, stored
from ovirt_placement.cli.questions import (
    Reading,
    add_change,
    add_command,
    add_config,
    add_json,
    add_questions,
    read_state,
    show_file,
    show_json,
    show_text,
)
from ovirt_placement.engine.topology import read_descriptions, read_snapshot
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Snapshot, yaml_files
from ovirt_placement.model.names import Named
from ovirt_placement.model.yaml_files import GroupEntry
from ovirt_placement.store.enforcer.observations import MembershipStore
from ovirt_service.errors import UserError


# -- `ovirt-placement groups lost`: what VMs were members of before they changed their cluster.
def run_lost(args: argparse.Namespace) -> int:
    if args.dry_run and args.forget is None:
        raise UserError("--dry-run goes with --forget: without it nothing is changed")
    entries = tuple(stored(MembershipStore, args, MembershipStore.lost, ()))
    kept = entries
    if args.forget is not None:
        known = {one.vm: Named(one.vm, one.vm_name) for one in entries}
        vm = find(args.forget, "VM that lost a membership", known.values())
        if not args.dry_run:
            with opened(MembershipStore, args, create=False) as store:
                store.forget_lost(vm.id)
        kept = tuple(one for one in entries if one.vm != vm.id)
    answer = GroupsLostDocument(losses=losses(kept))
    if args.json and args.forget is not None:
        gone = losses(one for one in entries if one not in kept)
        show_json(GroupsForgottenDocument(changed=True, dry_run=args.dry_run, before=gone, after=()))
    elif args.json:
        show_json(answer)
    else:
        show_text([table(answer.losses, LOSS_COLUMNS) if answer.losses else "Nothing is lost."])
    return 0


# -- `ovirt-placement groups list` and `export`.
def _read(args: argparse.Namespace, measured: Measured) -> Snapshot:
    """A live state with the groups of this moment, unless old ones will do."""
    known = read_state(args, measured=measured)
    if args.state is not None or args.stale:
        return known
    with connected(args) as connection:
        found = change.with_groups_of_now(known, connection)
    return read_state(args, max_age=0.0, measured=measured) if found is None else found


def _export(args: argparse.Namespace) -> int:
    with connected(args) as connection:
        snapshot, one = read_snapshot(connection), args.cluster
        chosen = snapshot.clusters if one is None else (find(one, "cluster", snapshot.clusters),)
        descriptions = {cluster.id: read_descriptions(connection, cluster.id) for cluster in chosen}
    entries = [
        GroupEntry(
            name=group.name,
            cluster=cluster.name,
            description=descriptions[cluster.id].get(group.id) or None,
            priority=group.priority,
            vms_rule=polarity_of(group.vms_rule),
            vms_enforcing=group.vms_rule.enforcing,
            hosts_rule=polarity_of(group.hosts_rule),
            hosts_enforcing=group.hosts_rule.enforcing,
            **{name: tuple(_member_words(getattr(group, name), name, snapshot)) for name in MEMBERS},
        )
        for cluster in chosen
        for group in snapshot.affinity_groups
        if group.cluster == cluster.id
    ]
    return show_file(args, yaml_files.described("groups", entries))


def _member_words(ids: tuple[str, ...], name: str, snapshot: Snapshot) -> Iterator[str]:
    """Names, and ids of what shares its name with another."""
    table = table_of(name, snapshot)
    names = [one.name for one in table.values()]
    for one in ids:
        known = table.get(one)
        yield known.name if known is not None and names.count(known.name) == 1 else one


# -- `ovirt-placement groups`: lists affinity groups, adds, changes and removes them.
DESCRIPTION = "Look at the engine's affinity groups and change them. See docs/groups.md."

ADD = "Add an affinity group. What the engine would refuse is refused with the reason.\n"
EDIT = "Change an affinity group: what is not given stays. The engine checks the whole group again.\n"
IMPORT = """\
Add or change affinity groups as a YAML file says; others stay. If the engine would refuse one, nothing is
sent.
"""
APPLY = "As import, but also remove groups that the file lacks from the clusters that it names.\n"
EXPORT = """\
Print affinity groups as YAML (with --json as JSON), as `groups import` and `groups apply` read them.
"""
REMOVE = "Remove an affinity group.\n"
LOST = """\
List the affinity groups and labels that VMs lost by a change of cluster, as ovirt-enforcer recorded them.
An entry goes when the VM is a member of a group or label of that name again, and with --forget.
"""

ADD_EXAMPLES = """\
  ovirt-placement groups add web-apart --cluster blue --vms-rule negative --vms-enforcing --vm web1 --vm web2
"""
EDIT_EXAMPLES = """\
  ovirt-placement groups edit web-apart --add-vm web3 --what-if
  ovirt-placement groups edit web-apart --no-vms-enforcing
"""
REMOVE_EXAMPLES = "  ovirt-placement groups remove web-apart\n"
IMPORT_EXAMPLES = "  ovirt-placement groups import groups.yaml --dry-run\n"
APPLY_EXAMPLES = "  ovirt-placement groups apply groups.yaml --fail-if 'violated,moves>5'\n"
EXPORT_EXAMPLES = "  ovirt-placement groups export --cluster blue > groups.yaml\n"
LOST_EXAMPLES = "  ovirt-placement groups lost --forget web1\n"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = subparsers.add_parser("groups", help=summary, description=DESCRIPTION)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    add_questions(actions, Reading(_read), "groups list")
    add = partial(add_command, actions)

    adding = add("add", "add an affinity group", ADD, change.add, ADD_EXAMPLES)
    adding.add_argument("name", metavar="NAME", help="unique over all clusters")
    adding.add_argument("--cluster", metavar="CLUSTER", required=True, help="by name or id")
    _add_rules(adding)
    _add_members(adding, "")
    add_writing(adding)

    editing = add("edit", "change an affinity group", EDIT, change.edit, EDIT_EXAMPLES)
    editing.add_argument("group", metavar="GROUP", help="by name or id")
    editing.add_argument("--name", metavar="NAME", help="a new name")
    _add_rules(editing)
    _add_members(editing, "add")
    _add_members(editing, "remove")
    unchecked = "change members one by one, which the engine does not check"
    editing.add_argument("--unchecked", action="store_true", help=unchecked)
    add_writing(editing)

    removing = add("remove", "remove an affinity group", REMOVE, change.remove, REMOVE_EXAMPLES)
    removing.add_argument("group", metavar="GROUP", help="by name or id")
    add_writing(removing)

    loading = partial(change.load, removing=False), partial(change.load, removing=True)
    importing = add("import", "make groups what a file says", IMPORT, loading[0], IMPORT_EXAMPLES)
    applying = add("apply", "have the groups of a file, and no others", APPLY, loading[1], APPLY_EXAMPLES)
    for one in (importing, applying):
        one.add_argument("file", metavar="FILE", type=Path)
        add_writing(one)
    exporting = add("export", "print all groups as YAML", EXPORT, _export, EXPORT_EXAMPLES)
    exporting.add_argument("--cluster", metavar="CLUSTER", help="only this cluster, by name or id; else all")
    add_config(exporting)
    add_json(exporting)

    losing = add("lost", "what VMs lost when they changed their cluster", LOST, run_lost, LOST_EXAMPLES)
    losing.add_argument("--forget", metavar="VM", help="forget what this VM lost")
    add_config(losing)
    add_change(losing)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--description", metavar="TEXT")
    add("--priority", type=float, metavar="NUMBER", help="of a soft rule; larger matters more")
    either = partial(add, action=argparse.BooleanOptionalAction, default=None, help="hard, or soft")
    for what, meanings in (
        ("vms", "positive: its VMs run together; negative: apart"),
        ("hosts", "positive: its VMs run on its hosts; negative: off them"),
    ):
        add(f"--{what}-rule", choices=("positive", "negative", "disabled"), help=meanings)
        either(f"--{what}-enforcing")


def _add_members(parser: argparse.ArgumentParser, verb: str) -> None:
    for option, metavar, meaning in (
        ("vm", "VM", "a VM"),
        ("host", "HOST", "a host"),
        ("vm-label", "LABEL", "a label of VMs"),
        ("host-label", "LABEL", "a label of hosts"),
    ):
        words, name = f"{verb} {meaning}".strip(), f"--{verb}-{option}" if verb else f"--{option}"
        parser.add_argument(name, metavar=metavar, action="append", default=[], help=words)
