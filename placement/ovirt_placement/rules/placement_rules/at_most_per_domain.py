"""At most k per failure domain. Invariant: no domain runs more than `most` members.

A host that is in no domain is one by itself.
"""

from __future__ import annotations

from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.forms import AtMost
from ovirt_placement.rules.placement_rules.kind import PlacementKind, common
from ovirt_placement.rules.placement_rules.limited import Limited
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.reasons import ReasonKind

DOMAIN_IS_FULL = ReasonKind(
    "domain_is_full",
    "{group} allows {number:g} of its VMs in a failure domain, and that of this host is full",
    veto=True,
)


class AtMostPerDomain(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "few in each failure domain"
    refusal: ClassVar[ReasonKind] = DOMAIN_IS_FULL


def _make(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> AtMostPerDomain:
    limit = AtMost(found.rule.most or 0, place_of=found.domain_of)
    return AtMostPerDomain(vms=vms, limit=limit, **common(found))


KIND = PlacementKind(
    name="at_most_per_domain",
    summary="at most `most` of the VMs in a failure domain",
    needs=("vms", "most"),
    in_domains=True,
    make=_make,
)
