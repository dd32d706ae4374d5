"""Parts of the product that are not at work here: nothing is wrong with them, and nothing comes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_placement.answers.doctor.policies import InUse
from ovirt_placement.answers.status.enforcement import EnforcementRecord
from ovirt_placement.model import Snapshot


def unused_units(snapshot: Snapshot, policy_of: Mapping[str, InUse]) -> Iterator[str]:
    """Clusters whose scheduling policy has none of our units; `policy_of` is by cluster."""
    without = [
        cluster.name
        for cluster in snapshot.clusters
        if cluster.id not in policy_of or not policy_of[cluster.id].attached
    ]
    if without and len(without) == len(snapshot.clusters):
        yield (
            "no cluster's scheduling policy has our units: VMs start by the engine's rules alone"
            " (ovirt-placement setup --cluster CLUSTER)"
        )
    elif without:
        yield (
            f"the scheduling policies of these clusters have none of our units: {', '.join(without)}"
            " (ovirt-placement setup --cluster CLUSTER)"
        )


def idle_enforcer(found: EnforcementRecord, unit: str) -> Iterator[str]:
    """An enforcer that does not run, or not as it is configured, or migrates nothing; `unit` is systemd's.

    A store that does not answer, or that nobody can write, is reported elsewhere.
    """
    if found.error is not None or (found.leader is None and found.unwritable is not None):
        return
    if found.leader is None:
        yield (
            "no enforcer runs: violated rules are not repaired, and HA reservations not watched"
            f" (systemctl enable --now {unit})"
        )
    elif not found.acts:
        yield "ovirt-enforcer is in observe mode: it reports, and migrates nothing ([enforcer] mode)"
    if found.configured_mode not in {None, found.mode}:
        yield (
            f"[enforcer] mode {found.configured_mode}: the enforcer that leads was started with {found.mode}"
            f" (systemctl restart {unit})"
        )
    yield from (f"migrations are paused: {sentence}" for sentence in found.paused)
