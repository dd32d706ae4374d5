"""How many members are in which failure domain: surely, and at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from ovirt_placement.rules.placement import Placement


class Counts(NamedTuple):
    """Of members other than the one that is asked about."""

    #: Those that are in a domain and nowhere else.
    surely: Counter[str]
    #: Those that hold a host there, too: a migrating VM counts at both ends.
    at_most: Counter[str]
    #: How many are on any host.
    running: int
    #: How many are somewhere, and nobody knows where.
    unknown: int


def count_others(
    vms: tuple[str, ...],
    vm: str,
    placement: Placement,
    domain_of: Mapping[str, str],
    unconfirmed: frozenset[str],
) -> Counts:
    """Count members by domain; hosts in no domain count for nothing."""
    surely: Counter[str] = Counter()
    at_most: Counter[str] = Counter()
    running = unknown = 0
    for peer in vms:
        if peer == vm:
            continue
        if peer in unconfirmed:
            unknown += 1
            continue
        hosts = placement.occupied(peer)
        domains = {domain_of.get(host) for host in hosts}
        running += bool(hosts)
        at_most.update(domain for domain in domains if domain is not None)
        if len(domains) == 1 and (only := next(iter(domains))) is not None:
            surely[only] += 1
    return Counts(surely, at_most, running, unknown)
