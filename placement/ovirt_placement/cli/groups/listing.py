"""`ovirt-placement groups list`: affinity groups, whether they are broken, their rules, members and hosts."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from ovirt_placement.answers import group_states
from ovirt_placement.answers.group_states import GroupState
from ovirt_placement.answers.names import host_name, vm_name
from ovirt_placement.cli.groups import change
from ovirt_placement.cli.question import clusters_of, find, read_state, show, show_json
from ovirt_placement.model import AffinityGroup, Rule, Snapshot

_HEADERS = ("group", "cluster", "state", "priority", "VM rule", "VMs", "host rule", "hosts")


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args, max_age=0.0)  # whoever has just changed a group wants to see that
    clusters = clusters_of(args, snapshot)
    vm = None if args.vm is None else find(args.vm, "VM", snapshot.vms).id
    states = {cluster.id: group_states.judge(snapshot, cluster.id) for cluster in clusters}
    groups = [
        (group, states[group.cluster][group.id])
        for group in snapshot.affinity_groups
        if group.cluster in states and (vm is None or vm in snapshot.group_vms[group.id])
    ]
    if args.json:
        show_json([{**change.described(group, snapshot), **_judged(state)} for group, state in groups])
    else:
        show([_row(group, state, snapshot) for group, state in groups], _HEADERS)
    return 0


def _judged(state: GroupState) -> dict[str, object]:
    return {"broken": state.broken, "broken_rules": state.broken_rules, "running": state.running}


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
