"""What the engine has no field for: how many failed hosts to survive, and which hosts are kept for that.

An administrator says both as properties of the cluster's scheduling policy, where the engine checks their
form; the unit HaReservationWeight announces them.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ovirt_placement.model import Host, Snapshot

FAILURES = "ha_failures"
#: Names of hosts, with commas between them.
FAILOVER_HOSTS = "ha_failover_hosts"


def failures(properties: Mapping[str, str]) -> int:
    """How many failed hosts a cluster with these properties is to survive; 1 unless they say more."""
    said = properties.get(FAILURES, "")
    return max(1, int(said)) if said.isascii() and said.isdigit() else 1


def with_failover_hosts(snapshot: Snapshot) -> Snapshot:
    """Mark the hosts that their clusters' scheduling properties name as dedicated failover hosts."""
    named = {
        cluster.id: frozenset(name.strip() for name in said.split(","))
        for cluster in snapshot.clusters
        if (said := cluster.scheduling_properties.get(FAILOVER_HOSTS))
    }
    if not named:
        return snapshot
    nobody: frozenset[str] = frozenset()

    def marked(host: Host) -> Host:
        failover = host.name in named.get(host.cluster, nobody)
        return host if host.failover == failover else replace(host, failover=failover)

    return replace(snapshot, hosts=tuple(marked(host) for host in snapshot.hosts))
