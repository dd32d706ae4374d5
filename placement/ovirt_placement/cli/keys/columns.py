"""Whether placement keys are reckoned with, for all commands that say what they say of a host."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.keys.key import KEY_UNITS


def add_placement_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--placement-keys",
        action="store_true",
        help="apply placement keys even if the cluster's policy lacks their units",
    )


def asked(args: argparse.Namespace) -> frozenset[str]:
    """The units that are to count although the policy may not enable them."""
    return KEY_UNITS if args.placement_keys else frozenset()
