"""What a placement rule is made of, as options."""

from __future__ import annotations

import argparse
from typing import Any

from ovirt_placement.model import RuleDomain
from ovirt_placement.rules.placement_rules.capacity import COUNTED
from ovirt_service.errors import UserError

_WORDS = (
    "names or ids, tag:NAME, group:NAME (an affinity group), label:NAME (an affinity label) or search:SEARCH"
    " (of the engine)"
)
_NUMBERS = {
    "most": "the most VMs, vCPUs or MiB",
    "least": "the least number of failure domains",
    "max_skew": "by how many VMs failure domains may differ",
    "min_domains": "with fewer failure domains, the emptiest counts as empty",
}


def add_fields(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add what a rule is made of, but for its name and kind."""
    parser.add_argument("--cluster", metavar="CLUSTER", required=required, help="by name or id")
    parser.add_argument("--vms", metavar="VM", nargs="+", help=f"the VMs: {_WORDS}")
    parser.add_argument(
        "--other-vms",
        metavar="VM",
        nargs="+",
        help="the second set of a rule between two; of restart_after, those that restart first",
    )
    parser.add_argument("--hosts", metavar="HOST", nargs="+", help="hosts, named in the same ways")
    parser.add_argument(
        "--domain-tags",
        metavar="PREFIX",
        nargs="+",
        help="failure domains: host tags with these prefixes; else those of the configuration",
    )
    parser.add_argument(
        "--domain",
        metavar="NAME=HOST,HOST",
        dest="domains",
        nargs="+",
        help="failure domains by their hosts",
    )
    for field, text in _NUMBERS.items():
        parser.add_argument(f"--{field.replace('_', '-')}", metavar="N", type=_number, help=text)
    parser.add_argument("--counted", choices=COUNTED, help="what is counted of VMs; else vms")
    strength = parser.add_mutually_exclusive_group()
    strength.add_argument("--hard", dest="enforcing", action="store_true", default=None, help="the default")
    strength.add_argument("--soft", dest="enforcing", action="store_false", help="preferred, not enforced")
    parser.add_argument("--priority", metavar="NUMBER", type=float, help="of a soft rule; else 1")
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--continuous", dest="continuous", action="store_true", default=None, help="the default"
    )
    when.add_argument(
        "--in-the-end",
        dest="continuous",
        action="store_false",
        help="migrations may violate it for a while",
    )
    enabled = parser.add_mutually_exclusive_group()
    enabled.add_argument("--enable", dest="enabled", action="store_true", default=None, help="the default")
    enabled.add_argument("--disable", dest="enabled", action="store_false", help="keep it without effect")


_FIELDS = (
    "cluster",
    "vms",
    "other_vms",
    "hosts",
    "domain_tags",
    *_NUMBERS,
    "counted",
    "enforcing",
    "priority",
    "continuous",
    "enabled",
)


def fields_of(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of a rule that were given. Raises `UserError` for domains that are none."""
    given = {field: value for field in _FIELDS if (value := getattr(args, field)) is not None}
    fields = {field: tuple(value) if isinstance(value, list) else value for field, value in given.items()}
    if args.domains is not None:
        fields["domains"] = tuple(map(_domain, args.domains))
    return fields


def _domain(text: str) -> RuleDomain:
    name, equals, hosts = text.partition("=")
    words = tuple(word.strip() for word in hosts.split(",") if word.strip())
    if not name or not equals or not words:
        raise UserError(f'"{text}": write a failure domain as NAME=HOST,HOST')
    return RuleDomain(name=name, hosts=words)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    return int(text)
