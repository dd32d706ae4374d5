"""What the engine's API says of the cluster, as tables: who runs where, and which rules are violated."""

import textwrap
from collections import defaultdict
from dataclasses import dataclass

import ovirtsdk4

from ovirt_service.text import table

#: Columns that the story takes at most.
WIDTH = 100


@dataclass(frozen=True)
class Placement:
    """What the engine's API answered at one moment, by name."""

    hosts: tuple[str, ...]
    host_of_vm: dict[str, str | None]
    members_of_group: dict[str, tuple[str, ...]]
    positive_groups: frozenset[str]
    violated_groups: frozenset[str]


def read(connection: ovirtsdk4.Connection, cluster: str) -> Placement:
    """Read hosts, VMs and affinity groups over the engine's SDK."""
    system = connection.system_service()
    hosts = {host.id: host.name for host in system.hosts_service().list()}
    vms = system.vms_service().list()
    names = {vm.id: vm.name for vm in vms}
    groups = system.clusters_service().cluster_service(cluster).affinity_groups_service().list()
    return Placement(
        hosts=tuple(sorted(hosts.values())),
        host_of_vm={vm.name: hosts[vm.host.id] if vm.host else None for vm in vms},
        members_of_group={group.name: tuple(names[vm.id] for vm in group.vms or ()) for group in groups},
        positive_groups=frozenset(group.name for group in groups if group.positive),
        violated_groups=frozenset(group.name for group in groups if group.broken),
    )


def folded(text: str) -> str:
    """The text with its lines folded at `WIDTH`; what is carried over is indented."""
    return "\n".join(_folded_line(line) for line in text.splitlines())


def _folded_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())] + "  "
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)) or line


def hosts_table(placement: Placement) -> str:
    """Each host with the VMs that run on it."""
    vms = defaultdict(list)
    for vm, host in sorted(placement.host_of_vm.items()):
        vms[host or "(down)"].append(vm)
    rows = [(host, textwrap.fill(" ".join(vms[host]), 78)) for host in (*placement.hosts, "(down)")]
    return table(rows, ("host", "VMs"))


def groups_table(placement: Placement) -> str:
    """Each affinity group with the hosts that its members run on, violated ones marked."""
    rows = []
    for group, members in sorted(placement.members_of_group.items()):
        where = [f"{vm}@{placement.host_of_vm[vm]}" for vm in members if placement.host_of_vm[vm]]
        rule = "together" if group in placement.positive_groups else "apart"
        state = "VIOLATED" if group in placement.violated_groups else "satisfied"
        rows.append((group, rule, state, textwrap.fill(" ".join(where), 60)))
    return table(rows, ("affinity group", "must run", "state", "running members"))
