"""What placement keys say of a host, as cells of a table, for all who ask."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.key_scores import HostKeys, KeyScore
from ovirt_placement.answers.key_sentences import figure
from ovirt_placement.rules.catalogue import NO_UNITS
from ovirt_placement.rules.placement_keys import key_filter, key_weight

KEY_FILTER, KEY_WEIGHT = key_filter.RULE.name, key_weight.RULE.name

HEADERS = ("system keys", "score", "round", "customer keys", "score")


def add_placement_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--placement-keys",
        action="store_true",
        help="reckon with placement keys although the cluster's policy does not enable their units",
    )


def asked(args: argparse.Namespace) -> frozenset[str]:
    """The units that are to count although the policy may not enable them."""
    return frozenset({KEY_FILTER, KEY_WEIGHT}) if args.placement_keys else NO_UNITS


def cells(one: HostKeys) -> tuple[str, ...]:
    """What stands below `HEADERS`; all empty for a host without room."""
    return (
        _sum(one.system) if one.system else "",
        figure(one.system.total) if one.system else "",
        str(one.round or ""),
        _sum(one.customer) if one.customer else "",
        figure(one.customer.total) if one.customer else "",
    )


def _sum(score: KeyScore) -> str:
    """The names that count, as in `GEN: 80 x 0.5`; of several VMs that bring the same value, each counts."""
    return "\n".join(
        f"{match.name}: {figure(match.weight)} x {figure(match.proximity)}"
        + (f" x {match.count}" if match.count > 1 else "")
        for match in score.matches
    )
