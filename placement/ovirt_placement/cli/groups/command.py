"""`ovirt-placement groups`: lists affinity groups, adds, changes and removes them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from ovirt_placement.answers.names import host_name, vm_name
from ovirt_placement.cli.arguments import add_command, add_config
from ovirt_placement.cli.groups import change
from ovirt_placement.cli.question import (
    add_cluster,
    add_question,
    clusters_of,
    find,
    read_state,
    show,
    show_json,
)
from ovirt_placement.model import AffinityGroup, Rule, Snapshot

DESCRIPTION = "Look at the engine's affinity groups and change them. See docs/groups.md."

LIST = """\
List affinity groups: all of them, those of a cluster, or those that a VM belongs to, itself or by a label.
"""
ADD = """\
Add an affinity group. What the engine would refuse is refused before it is asked, with the reason; of what
it would let through although it cannot be meant, you are warned.
"""
EDIT = """\
Change an affinity group: what is not named stays. The engine checks the whole group again; a group that
holds what it would refuse (members of other clusters, say) can only be changed if that goes too, or with
--unchecked.
"""
REMOVE = "Remove an affinity group, whatever its members."

_MEMBERS = (
    ("vm", "VM", "a VM, by name or id"),
    ("host", "HOST", "a host, by name or id"),
    ("vm-label", "LABEL", "an affinity label whose VMs belong to the group"),
    ("host-label", "LABEL", "an affinity label whose hosts belong to the group"),
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "groups", help="list affinity groups, add, edit and remove them", description=DESCRIPTION
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = add_command(actions, "list", "affinity groups, their rules and members", LIST, _list)
    add_cluster(listing)
    listing.add_argument("--vm", metavar="VM", help="only groups that this VM belongs to, by name or id")
    add_question(listing)
    _add_adding(add_command(actions, "add", "add an affinity group", ADD, change.add))
    _add_editing(add_command(actions, "edit", "change an affinity group", EDIT, change.edit))
    removing = add_command(actions, "remove", "remove an affinity group", REMOVE, change.remove)
    removing.add_argument("group", metavar="GROUP", help="its name or id")
    _add_connection(removing)


def _add_adding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="unique over all clusters")
    parser.add_argument("--cluster", metavar="CLUSTER", required=True, help="its cluster, by name or id")
    _add_rules(parser)
    for option, metavar, meaning in _MEMBERS:
        parser.add_argument(f"--{option}", metavar=metavar, action="append", default=[], help=meaning)
    _add_connection(parser)


def _add_editing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP", help="its name or id")
    parser.add_argument("--name", metavar="NAME", help="a new name")
    _add_rules(parser)
    for verb in ("add", "remove"):
        for option, metavar, meaning in _MEMBERS:
            parser.add_argument(
                f"--{verb}-{option}", metavar=metavar, action="append", default=[], help=f"{verb} {meaning}"
            )
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="change members one by one, which the engine does not check: neither clusters nor conflicts",
    )
    _add_connection(parser)


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--description", metavar="TEXT")
    parser.add_argument(
        "--priority", type=float, metavar="NUMBER", help="higher matters more among soft rules"
    )
    for what, meanings in (
        ("vms", "positive: its VMs run together; negative: apart"),
        ("hosts", "positive: its VMs run on its hosts; negative: off them"),
    ):
        parser.add_argument(f"--{what}-rule", choices=("positive", "negative", "disabled"), help=meanings)
        parser.add_argument(
            f"--{what}-enforcing",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="whether that must be so (hard), or should (soft)",
        )


def _add_connection(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _list(args: argparse.Namespace) -> int:
    snapshot = read_state(args, max_age=0.0)  # whoever has just changed a group wants to see that
    clusters = {cluster.id for cluster in clusters_of(args, snapshot)}
    vm = None if args.vm is None else find(args.vm, "VM", snapshot.vms).id
    groups = [
        group
        for group in snapshot.affinity_groups
        if group.cluster in clusters and (vm is None or vm in snapshot.group_vms[group.id])
    ]
    if args.json:
        show_json([change.described(group, snapshot) for group in groups])
    else:
        rows = [_row(group, snapshot) for group in groups]
        show(rows, ("group", "cluster", "priority", "VM rule", "VMs", "host rule", "hosts"))
    return 0


def _row(group: AffinityGroup, snapshot: Snapshot) -> tuple[str, ...]:
    labels = snapshot.label_by_id
    vms = [
        *(_vm(vm, group, snapshot) for vm in group.vms),
        *_labelled(
            (labels[i].name, [_vm(vm, group, snapshot) for vm in labels[i].vms]) for i in group.vm_labels
        ),
    ]
    hosts = [
        *(_host(host, group, snapshot) for host in group.hosts),
        *_labelled(
            (labels[i].name, [_host(host, group, snapshot) for host in labels[i].hosts])
            for i in group.host_labels
        ),
    ]
    return (
        group.name,
        snapshot.cluster_by_id[group.cluster].name,
        f"{group.priority:g}",
        _rule(group.vms_rule),
        "\n".join(vms),
        _rule(group.hosts_rule),
        "\n".join(hosts),
    )


def _rule(rule: Rule) -> str:
    if not rule.enabled:
        return "disabled"
    return f"{'positive' if rule.positive else 'negative'}{', enforcing' if rule.enforcing else ''}"


def _labelled(labels: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    for name, members in labels:
        yield f"label {name}: {', '.join(members) or 'none'}"


def _vm(vm: str, group: AffinityGroup, snapshot: Snapshot) -> str:
    known = snapshot.vm_by_id.get(vm)
    return vm_name(vm, snapshot) + _elsewhere(None if known is None else known.cluster, group, snapshot)


def _host(host: str, group: AffinityGroup, snapshot: Snapshot) -> str:
    known = snapshot.host_by_id.get(host)
    return host_name(host, snapshot) + _elsewhere(None if known is None else known.cluster, group, snapshot)


def _elsewhere(cluster: str | None, group: AffinityGroup, snapshot: Snapshot) -> str:
    """Mark a member of another cluster, which a label or the unchecked commands let in."""
    if cluster in (None, group.cluster):
        return ""
    return f" (of cluster {snapshot.cluster_by_id[cluster].name})"
