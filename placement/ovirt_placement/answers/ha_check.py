"""Whether highly available VMs would find homes if hosts failed, in words."""

from __future__ import annotations

from ovirt_placement.answers.names import host_name, vm_name
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.ha.check import HaCheck

#: The verdict on a cluster.
WORDS = {True: "safe", False: "unsafe", None: "unknown"}


def rows(found: HaCheck, snapshot: Snapshot) -> list[tuple[str, ...]]:
    """In words: cluster, failures, verdict, hosts that must not fail together, VMs that then have no home."""
    head = snapshot.cluster_by_id[found.cluster].name, str(found.failures), WORDS[found.safe]
    lines: list[tuple[str, ...]] = [
        (
            *head,
            "\n".join(host_name(host, snapshot) for host in loss.hosts),
            "\n".join(vm_name(vm, snapshot) for vm in loss.homeless),
        )
        for loss in found.losses
    ]
    open_sets = len(found.unknown) + found.unjudged
    if open_sets:
        proven = f"{found.survived} sets of hosts are proven to be survived"
        lines.append((*head, f"{open_sets} sets are not judged", proven))
    return lines or [(*head, "", "")]
