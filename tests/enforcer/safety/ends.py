"""Says whether a cluster at rest could be repaired further: brute force over all legal sequences."""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from tests.enforcer.safety.cases import Case
from tests.placement.planning.brute_force import BruteForce


def of_cluster(snapshot: Snapshot, case: Case) -> Snapshot:
    """The part of a snapshot that is one cluster, with what is opted out made immovable."""
    hosts = [host for host in snapshot.hosts if host.cluster == case.cluster]
    left_alone = {host.id for host in hosts if host.id in case.exclude_hosts or host.status != "up"}
    return replace(
        snapshot,
        clusters=tuple(one for one in snapshot.clusters if one.id == case.cluster),
        hosts=tuple(replace(host, status="maintenance") if host.id in left_alone else host for host in hosts),
        vms=tuple(
            replace(vm, migratable=vm.migratable and vm.id not in case.exclude_vms)
            for vm in snapshot.vms
            if vm.cluster == case.cluster
        ),
        affinity_groups=tuple(one for one in snapshot.affinity_groups if one.cluster == case.cluster),
        affinity_labels=tuple(
            one for one in snapshot.affinity_labels if one.id.startswith(f"{case.cluster}-")
        ),
        pending=(),
    )


def violated(end: Snapshot) -> int:
    """How many hard rules are violated."""
    oracle = BruteForce(end)
    return oracle.score(oracle.start)[0]


def fewest_violated(end: Snapshot) -> int:
    """How many hard rules are not repaired at least, whatever legal migrations are made."""
    oracle = BruteForce(end)
    known, queue = {oracle.start}, deque([oracle.start])
    fewest = oracle.score(oracle.start)[0]
    while queue and fewest:
        for after, _ in oracle.migrations(queue.popleft()):
            if after not in known:
                known.add(after)
                queue.append(after)
                fewest = min(fewest, oracle.score(after)[0])
    return fewest
