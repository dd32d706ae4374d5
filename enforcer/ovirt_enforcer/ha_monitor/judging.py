"""Judges the HA reservation of clusters: the work of a process outside the daemon's loop."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from ovirt_enforcer.ha_monitor.verdict import ReservationVerdict, unknown, verdict_of
from ovirt_placement.answers.ha_check_domains import configured_domains
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.check import check
from ovirt_service.errors import UserError


def judge_encoded(
    snapshot: bytes, clusters: Sequence[str], settings: HaSettings
) -> tuple[ReservationVerdict, ...]:
    """Judge these clusters of a snapshot that was encoded with msgpack."""
    decoded = msgspec.msgpack.decode(snapshot, type=Snapshot)
    return tuple(judge(decoded, cluster, settings) for cluster in clusters)


def judge(snapshot: Snapshot, cluster: str, settings: HaSettings) -> ReservationVerdict:
    """Judge every set of as many hosts as the cluster is set to, and every failure domain by itself."""
    began = time.monotonic()
    try:
        domains = configured_domains(snapshot, settings)
    except UserError as error:
        return unknown(snapshot, cluster, str(error))
    of_hosts = check(snapshot, cluster)
    if of_hosts.doubt and not of_hosts.lost:
        return unknown(snapshot, cluster, of_hosts.doubt)
    of_domains = check(snapshot, cluster, domains=domains) if domains else None
    return verdict_of(snapshot, cluster, of_hosts, of_domains, time.monotonic() - began)
