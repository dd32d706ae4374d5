"""What placement keys say of a host, as cells of a table and as JSON, for all who ask."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.key_sentences import figure
from ovirt_placement.answers.policy_units import KEY_FILTER, KEY_WEIGHT
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.rules.placement_keys.decision import HostDecision
from ovirt_placement.rules.placement_keys.parameters import settings_of
from ovirt_placement.rules.placement_keys.placing import decide_vm
from ovirt_placement.rules.placement_keys.score import Score

HEADERS = ("system keys", "score", "round", "customer keys", "score")


def add_placement_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--placement-keys",
        action="store_true",
        help="reckon with placement keys although the cluster's policy does not enable their units",
    )


def filters_by_keys(cluster: Cluster, args: argparse.Namespace) -> bool:
    policy = cluster.scheduling_policy
    enabled = policy is not None and KEY_FILTER in policy.filters
    return enabled or args.placement_keys is True


def weighs_by_keys(cluster: Cluster, args: argparse.Namespace) -> bool:
    policy = cluster.scheduling_policy
    enabled = policy is not None and policy.weights.get(KEY_WEIGHT, 0) > 0
    return enabled or args.placement_keys is True


def decisions(
    snapshot: Snapshot, vm: Vm, hosts: tuple[Host, ...], args: argparse.Namespace
) -> dict[str, HostDecision]:
    """How far each host comes by keys; nothing where no unit asks for them, or local storage decides."""
    cluster = snapshot.cluster_by_id[vm.cluster]
    if not filters_by_keys(cluster, args) and not weighs_by_keys(cluster, args):
        return {}
    settings = settings_of(cluster.scheduling_properties)
    decision = decide_vm(snapshot, vm, (host.id for host in hosts), settings)
    return {one.host: one for one in decision.hosts}


def cells(one: HostDecision) -> tuple[str, ...]:
    """What stands below `HEADERS`; all empty for a host without room."""
    return (
        _sum(one.system) if one.system else "",
        figure(one.system.total) if one.system else "",
        str(one.round or ""),
        _sum(one.customer) if one.customer else "",
        figure(one.customer.total) if one.customer else "",
    )


def described(one: HostDecision) -> dict[str, object]:
    return {
        "host": one.host,
        "shortages": one.room.shortages,
        "uncontended_mb": float(one.room.uncontended_mb),
        "uncontended_need_mb": one.room.uncontended_need_mb,
        "contended_mb": one.room.contended_mb,
        "contended_need_mb": one.room.contended_need_mb,
        "round": one.round,
        "system": _described_score(one.system),
        "customer": _described_score(one.customer),
    }


def _sum(score: Score) -> str:
    """The names that count, as in `GEN: 80 x 0.5`; of several VMs that bring the same value, each counts."""
    return "\n".join(
        f"{match.key.name}: {figure(match.key.weight)} x {figure(match.proximity)}"
        + (f" x {match.count}" if match.count > 1 else "")
        for match in score.matches
    )


def _described_score(score: Score | None) -> dict[str, object] | None:
    if score is None:
        return None
    return {
        "total": float(score.total),
        "matches": [
            {
                "name": match.key.name,
                "value": float(match.key.value),
                "weight": float(match.key.weight),
                "found": float(match.found),
                "count": match.count,
                "proximity": float(match.proximity),
                "points": float(match.points),
            }
            for match in score.matches
        ],
    }
