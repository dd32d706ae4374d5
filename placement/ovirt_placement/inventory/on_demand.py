"""What is read only where an enabled rule or a key asks for it, since it costs the engine more."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.engine.vms import NO_DETAILS, Detail
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Cluster, PlacementRule
from ovirt_placement.model.record import MemberSearch, SearchOf
from ovirt_placement.model.snapshot import HOST_STATISTICS, HOST_TAGS, VM_STATISTICS, Needed
from ovirt_placement.rules.catalogue import RULES
from ovirt_placement.rules.failover.outcomes import listed_tags

_NEVER = float("-inf")


class Span(NamedTuple):
    """What was read was so at some moment from `began` to `ended`; seconds of one clock."""

    began: float
    ended: float


NEVER = Span(_NEVER, _NEVER)

#: What stands for tags of VMs among these levels.
VM_TAGS = "tags"
#: What keys on each level of the hierarchy refer to; a VM as it is read anyway has all the others.
_REFERRED = {
    **dict.fromkeys(("customer_offer", "customer", VM_TAGS), Detail.OWNER),
    **dict.fromkeys(("disk_offer", "disk"), Detail.DISKS),
    **dict.fromkeys(("network_offer", "network", "nic_offer", "nic"), Detail.NICS),
}


def referred(levels: Iterable[str]) -> Detail:
    """Say what placement keys on these levels refer to."""
    return reduce(or_, (_REFERRED.get(level, NO_DETAILS) for level in levels), NO_DETAILS)


#: What is searched, and by which text.
Wanted = frozenset[tuple[SearchOf, str]]
NO_SEARCHES: Wanted = frozenset()


def searches_of(rules: Iterable[PlacementRule]) -> Wanted:
    """The searches that rules name."""
    return frozenset(search for rule in rules for search in rule.searches)


NO_STATISTICS: Needed = frozenset()


class Demands(NamedTuple):
    """What placement keys and rules, ours and the engine's, need of the engine besides the topology."""

    #: What keys refer to, and tags of VMs where a rule names some.
    details: Detail = NO_DETAILS
    #: What rules have the engine search.
    searches: Wanted = NO_SEARCHES
    #: The tags of hosts where rules go by them, and what enabled rules ask for.
    statistics: Needed = NO_STATISTICS
    #: What of these anybody asks for, where no service runs.
    measured: Measured = Measured.FOR_RESERVATION

    def lack(self, read: Demands) -> bool:
        """Whether more is needed than was read."""
        more = self.details & ~read.details or self.searches - read.searches
        return bool(more or self.statistics - read.statistics) or self.measured > read.measured


NO_DEMANDS = Demands()


class KnownSearches:
    """The last answer to each search; whom it has found counts on while the engine refuses it."""

    def __init__(self) -> None:
        self.wanted = NO_SEARCHES
        #: The same object as long as nothing changes.
        self.found: tuple[MemberSearch, ...] = ()
        #: When each was last answered, in seconds since the epoch.
        self._answered: dict[tuple[SearchOf, str], float] = {}

    def want(self, wanted: Wanted) -> None:
        """Forget what is not wanted any more."""
        if wanted != self.wanted:
            self.wanted = wanted
            self._keep_answers(self.found)

    def put(self, answers: Iterable[MemberSearch]) -> None:
        """Take the answers of one reading."""
        known = {(one.of, one.text): one for one in self.found}
        for answer in answers:
            search = answer.of, answer.text
            before = known.get(search)
            known[search] = answer
            if answer.found is not None:
                self._answered[search] = time.time()
            elif before is not None and before.found is not None:
                since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self._answered[search]))
                problem = f"{answer.problem}; whom it found at {since} counts"
                known[search] = replace(answer, found=before.found, problem=problem)
        self._keep_answers(known.values())

    def _keep_answers(self, answers: Iterable[MemberSearch]) -> None:
        kept = tuple(one for one in answers if (one.of, one.text) in self.wanted)
        if kept != self.found:
            self.found = kept


def needed(
    clusters: Iterable[Cluster],
    demanded: Needed = NO_STATISTICS,
    *,
    tagged: bool = False,
    measured: Measured = Measured.FOR_RESERVATION,
) -> Needed:
    """Say which statistics the enabled rules need; the check of HA reservation needs all.

    The tags of hosts are needed where those name failure domains, by the configuration (`tagged`) or by a
    policy's properties, and where they are `demanded`.
    """
    parts = set(demanded)
    if tagged and measured > Measured.NOTHING:
        parts.add(HOST_TAGS)
    for cluster in clusters if measured > Measured.NOTHING else ():
        policy = cluster.scheduling_policy
        # Of the engine's own filters nothing is read on suspicion: a policy must have them.
        engines = () if policy is None else policy.engine_filters
        enabled = [one for one in RULES if (one.enabled_in(cluster) if one.ours else one.name in engines)]
        parts.update(*({HOST_STATISTICS, VM_STATISTICS} & rule.reads for rule in enabled))
        if cluster.ha_reservation and measured >= Measured.FOR_RESERVATION:
            parts |= {HOST_STATISTICS, VM_STATISTICS}
        if listed_tags(cluster.scheduling_properties):
            parts.add(HOST_TAGS)
    return frozenset(parts | {HOST_STATISTICS} if HOST_TAGS in parts else parts)
