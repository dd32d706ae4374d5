"""`ovirt-placement groups list`: affinity groups, whether they are broken, their rules, members and hosts."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from ovirt_placement import config
from ovirt_placement.answers import group_states
from ovirt_placement.answers.documents.groups import GroupsListDocument, listed_group
from ovirt_placement.answers.finding import find_id
from ovirt_placement.answers.group_states import GroupState
from ovirt_placement.cli.groups.now import with_groups_of_now
from ovirt_placement.cli.question import clusters_of, read_state, show, show_answer, too_many
from ovirt_placement.inventory import Measured
from ovirt_placement.model import AffinityGroup, Rule, Snapshot
from ovirt_placement.model.names import host_name, vm_name

_HEADERS = ("group", "cluster", "state", "priority", "VM rule", "VMs", "host rule", "hosts")


def run(args: argparse.Namespace) -> int:
    snapshot = _read(args)
    clusters = clusters_of(args, snapshot)
    states = {cluster.id: group_states.judge(snapshot, cluster.id) for cluster in clusters}
    groups = [
        (group, states[group.cluster][group.id])
        for group in _wanted(args, snapshot)
        if group.cluster in states and not (args.broken and not states[group.cluster][group.id].broken)
    ]
    if args.json:
        told = tuple(listed_group(group, state, snapshot) for group, state in groups)
        show_answer(args, GroupsListDocument(groups=told))
    elif not groups:
        print("No affinity group is broken." if args.broken else "No affinity groups.")
    else:
        _show(groups, snapshot, whole=args.all)
    return 0


def _read(args: argparse.Namespace) -> Snapshot:
    """The state that is asked about; a live one with the groups of this moment, unless old ones will do."""
    if args.state is not None or args.stale:
        return read_state(args, measured=Measured.NOTHING)
    # The SDK takes long to load: not for a state file.
    from ovirt_placement.engine.connection.client import connect

    known = read_state(args, measured=Measured.NOTHING)
    with connect(config.load(args.config).engine) as connection:
        found = with_groups_of_now(known, connection)
    return read_state(args, max_age=0.0, measured=Measured.NOTHING) if found is None else found


def _wanted(args: argparse.Namespace, snapshot: Snapshot) -> Iterator[AffinityGroup]:
    """Those that are asked for. Raises `UserError` where a name is not known."""
    vm = find_id(args.vm, "VM", snapshot.vms)
    host = find_id(args.host, "host", snapshot.hosts)
    wanted = find_id(args.group, "affinity group", snapshot.affinity_groups)
    for group in snapshot.affinity_groups:
        members = snapshot.group_vms[group.id]
        if (
            wanted in (None, group.id)
            and (vm is None or vm in members)
            and (host is None or host in snapshot.group_hosts[group.id] or _run_on(host, members, snapshot))
        ):
            yield group


def _run_on(host: str, vms: Iterable[str], snapshot: Snapshot) -> bool:
    """Whether any of the VMs runs on the host."""
    known = (snapshot.vm_by_id.get(vm) for vm in vms)
    return any(vm is not None and vm.host == host for vm in known)


def _show(groups: Sequence[tuple[AffinityGroup, GroupState]], snapshot: Snapshot, *, whole: bool) -> None:
    """Of many groups how many stand how, and those that are broken first."""
    if whole or not too_many(groups):
        shown = list(groups)
    else:
        counts = Counter(_standing(state) for _, state in groups)
        told = ", ".join(f"{counts[word]} {word}" for word in ("broken", "kept", "disabled") if counts[word])
        print(f"{len(groups)} affinity groups: {told}\n")
        shown = sorted(groups, key=lambda one: not one[1].broken)
    rows = [_row(group, state, snapshot) for group, state in shown]
    left_out = set() if len({group.cluster for group, _ in shown}) > 1 else {_HEADERS.index("cluster")}
    show([_without(left_out, row) for row in rows], _without(left_out, _HEADERS), whole=whole)


def _without(columns: Collection[int], row: Sequence[str]) -> tuple[str, ...]:
    """A cluster that is the same for all takes no room from names."""
    return tuple(cell for at, cell in enumerate(row) if at not in columns)


def _standing(state: GroupState) -> str:
    return "broken" if state.broken else group_states.in_words(state)


def _row(group: AffinityGroup, state: GroupState, snapshot: Snapshot) -> tuple[str, ...]:
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
        group_states.in_words(state),
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
    """The VM, with the host on which it runs."""
    known = snapshot.vm_by_id.get(vm)
    place = "" if known is None or known.host is None else f" on {host_name(known.host, snapshot)}"
    elsewhere = _elsewhere(None if known is None else known.cluster, group, snapshot)
    return f"{vm_name(vm, snapshot)}{place}{elsewhere}"


def _host(host: str, group: AffinityGroup, snapshot: Snapshot) -> str:
    known = snapshot.host_by_id.get(host)
    return host_name(host, snapshot) + _elsewhere(None if known is None else known.cluster, group, snapshot)


def _elsewhere(cluster: str | None, group: AffinityGroup, snapshot: Snapshot) -> str:
    """Mark a member of another cluster, which a label or the unchecked commands let in."""
    if cluster in (None, group.cluster):
        return ""
    return f" (of cluster {snapshot.cluster_by_id[cluster].name})"
