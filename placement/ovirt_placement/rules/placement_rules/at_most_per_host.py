"""At most k per host. Invariant: no host runs more than `most` members.

Source: Nova's `max_server_per_host`.
"""

from __future__ import annotations

from typing import ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.forms import AtMost
from ovirt_placement.rules.placement_rules.kind import PlacementKind, common
from ovirt_placement.rules.placement_rules.limited import Limited
from ovirt_placement.rules.placement_rules.members import Resolved
from ovirt_placement.rules.reasons import ReasonKind

HOST_IS_FULL = ReasonKind(
    "host_is_full", "{group} allows {number:g} of its VMs on a host, and this host is full", veto=True
)


class AtMostPerHost(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "few on each host"
    refusal: ClassVar[ReasonKind] = HOST_IS_FULL


def _make(snapshot: Snapshot, found: Resolved, vms: tuple[str, ...]) -> AtMostPerHost:
    return AtMostPerHost(vms=vms, limit=AtMost(found.rule.most or 0), **common(found))


KIND = PlacementKind(
    name="at_most_per_host",
    summary="at most `most` of the VMs on a host",
    needs=("vms", "most"),
    make=_make,
)
