"""`ovirt-placement where`: the hosts that may take a VM, from best to worst, with what each weight says."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.policy_units import KEY_WEIGHT
from ovirt_placement.answers.sentences import host_name, sentence
from ovirt_placement.cli import why
from ovirt_placement.cli.arguments import add_command
from ovirt_placement.cli.keys import columns
from ovirt_placement.cli.question import add_question, find, read_state, show, show_json
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.rules import rank_selector
from ovirt_placement.rules.affinity import host_weight, vm_weight
from ovirt_placement.rules.ha import weight
from ovirt_placement.rules.placement_keys import placing
from ovirt_placement.rules.placement_keys.parameters import settings_of
from ovirt_placement.rules.verdict import Request, Weight

DESCRIPTION = """\
List the hosts that `ovirt-placement why` accepts for a VM, from best to worst by our weights: the rank that
each gives (0 is best), and the points that the engine's selector makes of them with the policy's factors.
The engine's own weights (CPU, memory, ...) and other sites' units are not reckoned with. Where the cluster's
policy enables the units of placement keys, also what keys say: their nearness, the scores and the round.
"""

_UNITS = {
    "SoftAffinityWeight": vm_weight.rank_hosts,
    "HostAffinityWeight": host_weight.rank_hosts,
    "HaReservationWeight": weight.rank_hosts,
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(subparsers, "where", "hosts for a VM, from best to worst", DESCRIPTION, run)
    parser.add_argument("vm", metavar="VM", help="its name or id")
    add_question(parser)
    columns.add_placement_keys(parser)


def run(args: argparse.Namespace) -> int:
    snapshot = read_state(args)
    vm = find(args.vm, "VM", snapshot.vms)
    cluster = snapshot.cluster_by_id[vm.cluster]
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    verdicts = why.judge(snapshot, vm, hosts, args)
    by_keys = columns.decisions(snapshot, vm, hosts, args)
    request = Request((vm.id,), tuple(verdict.host for verdict in verdicts if verdict.accepted))
    weights = {unit: _by_host(rank(snapshot, request)) for unit, rank in _UNITS.items()}
    if columns.weighs_by_keys(cluster, args):
        settings = settings_of(cluster.scheduling_properties)
        weights[KEY_WEIGHT] = _by_host(placing.rank_hosts(snapshot, request, settings))
    ranks: dict[str | None, dict[str, int]] = {
        unit: {host: found.rank for host, found in hosts.items()} for unit, hosts in weights.items()
    }
    order = rank_selector.order_hosts(request.candidate_hosts, ranks, _factors(cluster))
    if args.json:
        show_json(
            [
                {
                    "host": one.host,
                    "points": one.points,
                    **_described(weights, one.host),
                    **({"placement_keys": columns.described(by_keys[one.host])} if by_keys else {}),
                }
                for one in order
            ]
        )
    else:
        rows = [
            (
                host_name(one.host, snapshot),
                one.points,
                *_cells(snapshot, weights, one.host),
                *(columns.cells(by_keys[one.host]) if by_keys else ()),
            )
            for one in order
        ]
        show(rows, ("host", "points", *weights, "why", *(columns.HEADERS if by_keys else ())))
    return 0


def _factors(cluster: Cluster) -> dict[str, int]:
    """Of our units in the cluster's policy; 1 where the policy is not known or lacks them."""
    return dict(cluster.scheduling_policy.weights) if cluster.scheduling_policy else {}


def _by_host(weights: tuple[Weight, ...]) -> dict[str, Weight]:
    return {weight.host: weight for weight in weights}


def _cells(snapshot: Snapshot, weights: dict[str, dict[str, Weight]], host: str) -> tuple[object, ...]:
    reasons = (reason for unit in weights for reason in weights[unit][host].reasons)
    why_so = "\n".join(dict.fromkeys(sentence(reason, snapshot) for reason in reasons))
    return *(weights[unit][host].rank for unit in weights), why_so


def _described(weights: dict[str, dict[str, Weight]], host: str) -> dict[str, object]:
    return {
        "weights": {
            unit: {"rank": hosts[host].rank, "reasons": hosts[host].reasons}
            for unit, hosts in weights.items()
        }
    }
